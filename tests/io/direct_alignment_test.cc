#include "io/direct_alignment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;

// A device that wants `memory` and `offset`, and answers EINVAL otherwise.
DirectReadTrial Device(uint64_t memory, uint64_t offset) {
  return [=](uint64_t memory_offset, uint64_t length, uint64_t at) {
    return memory_offset % memory == 0 && length % offset == 0 &&
                   at % offset == 0
               ? 0
               : EINVAL;
  };
}

TEST(DirectAlignmentTest, FindsWhatADeviceAsksFor) {
  for (uint32_t memory = 512; memory <= 65536; memory *= 2) {
    for (uint32_t offset = 512; offset <= 65536; offset *= 2) {
      for (const uint64_t size :
           {uint64_t{1}, uint64_t{4097}, uint64_t{1} << 30}) {
        const auto found = SearchDirectAlignment(size, Device(memory, offset));
        ASSERT_THAT(found, IsOk());
        EXPECT_EQ(found->memory, memory);
        EXPECT_EQ(found->offset, offset);
      }
    }
  }
}

TEST(DirectAlignmentTest, ReportsADeviceThatTakesNothing) {
  EXPECT_THAT(
      SearchDirectAlignment(
          1 << 20, [](uint64_t, uint64_t, uint64_t) { return EINVAL; }),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Invalid argument")));
}

TEST(DirectAlignmentTest, StopsAtAnErrorThatIsNotAboutAlignment) {
  int trials = 0;
  EXPECT_THAT(SearchDirectAlignment(1 << 20,
                                    [&](uint64_t, uint64_t, uint64_t) {
                                      ++trials;
                                      return EIO;
                                    }),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("Input/output error")));
  EXPECT_EQ(trials, 1);
}

TEST(DirectAlignmentTest, ProbesARealFile) {
  const TempDir dir;
  const std::string path = dir.Write("f", std::string(5000, 'x'));
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECT);
  if (fd < 0) GTEST_SKIP() << "O_DIRECT is refused at open here";
  const auto found = ProbeDirectAlignment(fd, 5000);
  if (found.ok()) {
    EXPECT_LE(found->offset, 65536u);
    EXPECT_GE(found->offset, 1u);
    EXPECT_LE(found->memory, 65536u);
  } else {
    EXPECT_THAT(found, StatusIs(absl::StatusCode::kUnavailable));
  }
  EXPECT_THAT(ProbeDirectAlignment(fd, 0), IsOk());
  close(fd);
}

TEST(DirectAlignmentTest, NamesTheFileSystem) {
  const int fd = open("/proc/self/status", O_RDONLY);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(FileSystemName(fd), "file system 0x9FA0");
  close(fd);
  EXPECT_EQ(FileSystemName(-1), "unknown file system");
}

}  // namespace
}  // namespace coldstream
