#include "runtime/profile_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

class ModelKeyTest : public ::testing::Test {
 protected:
  std::string Key(const std::string& name, const TinyModelOptions& options) {
    EXPECT_THAT(WriteTinyModel(dir_.Path(name), options), IsOk());
    return ModelKey(Checkpoint::Open(dir_.Path(name)).value());
  }
  TempDir dir_;
};

TEST_F(ModelKeyTest, IsTheSameForTheSameTensorsElsewhere) {
  EXPECT_EQ(Key("a.gguf", {}), Key("b.gguf", {.seed = 2}));
}

TEST_F(ModelKeyTest, DiffersByTypeAndShape) {
  const std::string key = Key("a.gguf", {});
  EXPECT_NE(key, Key("b.gguf", {.type = DType::kF16}));
  EXPECT_NE(key, Key("c.gguf", {.layers = 3}));
  EXPECT_NE(key, Key("d.gguf", {.ffn = 128}));
}

TEST(ComputeKeyTest, NamesCpuIsaAndThreads) {
  const TempDir dir;
  const SystemPaths paths{.proc = dir.path()};
  EXPECT_EQ(ComputeKey("avx2", 4, paths), "unknown CPU, avx2, 4 threads");
  dir.Write("cpuinfo",
            "processor\t: 0\nmodel\t\t: 17\nmodel name\t: Fast CPU 9000  \n");
  EXPECT_EQ(ComputeKey("avx2", 4, paths), "Fast CPU 9000, avx2, 4 threads");
}

}  // namespace
}  // namespace coldstream
