#include "tools/memory_ceiling.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

class MemoryCeilingTest : public ::testing::Test {
 protected:
  void AddCache(const std::string& cpu, const std::string& index,
                const std::string& level, const std::string& size,
                const std::string& cpus) {
    const std::string folder =
        "devices/system/cpu/" + cpu + "/cache/" + index + "/";
    dir_.Write(folder + "level", level + "\n");
    dir_.Write(folder + "size", size + "\n");
    dir_.Write(folder + "shared_cpu_list", cpus + "\n");
  }

  TempDir dir_;
};

TEST_F(MemoryCeilingTest, LastLevelCachesAreEachCountedOnce) {
  for (const char* cpu : {"cpu0", "cpu1", "cpu2"}) {
    AddCache(cpu, "index0", "1", "32K", cpu);
    AddCache(cpu, "index2", "2", "512K", cpu);
  }
  AddCache("cpu0", "index3", "3", "16384K", "0-1");
  AddCache("cpu1", "index3", "3", "16384K", "0-1");
  AddCache("cpu2", "index3", "3", "8192K", "2");
  dir_.Write("devices/system/cpu/cpufreq/boost", "1\n");
  EXPECT_EQ(LastLevelCacheBytes(dir_.path()), uint64_t{24} << 20);
}

TEST_F(MemoryCeilingTest, ASystemThatDoesNotTellHasNone) {
  EXPECT_EQ(LastLevelCacheBytes(dir_.path()), 0u);
}

TEST_F(MemoryCeilingTest, ABufferThatFitsTheCachesIsRefused) {
  EXPECT_THAT(MeasureMemoryCeiling(1, 1 << 20),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       ::testing::HasSubstr("1.00 MiB")));
}

TEST_F(MemoryCeilingTest, MemoryHasARate) {
  const StatusOr<double> rate = MeasureMemoryCeiling(2, uint64_t{1} << 34);
  ASSERT_THAT(rate, IsOk());
  EXPECT_GT(*rate, 0);
}

}  // namespace
}  // namespace coldstream
