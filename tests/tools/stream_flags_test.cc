#include "tools/stream_flags.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The message of the parse error, or "" if all went well.
std::string Parse(std::vector<std::string> arguments, StreamFlags* flags) {
  CLI::App app;
  AddStreamFlags(app, flags);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes from behind
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(StreamFlagsTest, FillsEveryOption) {
  StreamFlags flags;
  ASSERT_EQ(Parse({"-m",
                   "a.gguf",
                   "-c",
                   "100",
                   "-b",
                   "7",
                   "-t",
                   "3",
                   "--ram",
                   "1.5G",
                   "--io",
                   "pread",
                   "--pre",
                   "qwen2",
                   "--direct",
                   "off",
                   "--io-depth",
                   "32",
                   "--device",
                   "cuda",
                   "--vram",
                   "8G",
                   "--staging",
                   "32M",
                   "--gpu-layers",
                   "99",
                   "--cpu-layers",
                   "0",
                   "--cpu-ffn",
                   "12",
                   "--json",
                   "--io-chunk",
                   "2M",
                   "--prefetch-depth",
                   "64"},
                  &flags),
            "");
  EXPECT_EQ(flags.model, "a.gguf");
  EXPECT_EQ(flags.context, 100);
  EXPECT_EQ(flags.batch, 7);
  EXPECT_EQ(flags.threads, 3);
  EXPECT_EQ(flags.ram, uint64_t{3} << 29);
  EXPECT_EQ(flags.prefetch_depth, 64);
  EXPECT_EQ(flags.io, IoBackendKind::kPread);
  EXPECT_EQ(flags.direct, DirectMode::kOff);
  EXPECT_EQ(flags.pre, "qwen2");
  EXPECT_TRUE(flags.json);
  EXPECT_EQ(flags.device, DeviceChoice::kCuda);
  EXPECT_EQ(flags.vram, uint64_t{8} << 30);
  EXPECT_EQ(flags.staging, uint64_t{32} << 20);
  EXPECT_EQ(flags.gpu_layers, 99);
  EXPECT_EQ(flags.cpu_layers, 0);
  EXPECT_EQ(flags.cpu_ffn, 12);
  const ReaderOptions reader = flags.reader_options();
  EXPECT_EQ(reader.backend, IoBackendKind::kPread);
  EXPECT_EQ(reader.depth, 32);
  EXPECT_EQ(reader.chunk_bytes, uint64_t{2} << 20);
}

TEST(StreamFlagsTest, TheTokensOfAPassHaveThreeNames) {
  for (const char* name : {"-b", "--batch-tokens", "--batch-size"}) {
    StreamFlags flags;
    ASSERT_EQ(Parse({"-m", "a.gguf", name, "9"}, &flags), "") << name;
    EXPECT_EQ(flags.batch, 9) << name;
  }
}

TEST(StreamFlagsTest, KeysAndValuesAreStoredAlike) {
  StreamFlags flags;
  ASSERT_EQ(Parse({"-m", "a.gguf", "--cache-type-k", "q8_0", "--cache-type-v",
                   "q8_0"},
                  &flags),
            "");
  EXPECT_TRUE(CheckStreamFlags(flags).ok());
  EXPECT_EQ(flags.kv_type(), KvType::kQ8_0);
  for (const char* one : {"--cache-type-k", "--cache-type-v"}) {
    StreamFlags half;
    ASSERT_EQ(Parse({"-m", "a.gguf", one, "q8_0"}, &half), "");
    EXPECT_THAT(std::string(CheckStreamFlags(half).message()),
                HasSubstr("give both the same type"));
  }
}

TEST(StreamFlagsTest, LeavesWhatIsNotGivenToTheEngine) {
  StreamFlags flags;
  ASSERT_EQ(Parse({"-m", "a.gguf"}, &flags), "");
  EXPECT_FALSE(flags.context);
  EXPECT_FALSE(flags.batch);
  EXPECT_FALSE(flags.threads);
  EXPECT_FALSE(flags.ram);
  EXPECT_FALSE(flags.prefetch_depth);
  EXPECT_EQ(flags.reader_options().depth, ReaderOptions().depth);
  EXPECT_EQ(flags.reader_options().chunk_bytes, ReaderOptions().chunk_bytes);
}

TEST(StreamFlagsTest, NamesTheOptionItsRangeAndWhatItGot) {
  const struct {
    const char* option;
    const char* value;
    const char* expected;
  } kCases[] = {
      {"--prefetch-depth", "0", "1 to 64"},
      {"--prefetch-depth", "65", "1 to 64"},
      {"-c", "0", "from 1 to"},
      {"-b", "0", "from 1 to"},
      {"-t", "-2", "from 1 to"},
      {"--ram", "-8G", "not a size"},
      {"--ram", "lots", "not a size"},
      {"--cache-type-k", "q4_0", "f16|q8_0"},
      {"--io", "aio", "auto|uring|pread"},
      {"--direct", "yes", "auto|on|off"},
      {"--io-depth", "4097", "1 to 4096"},
      {"--io-chunk", "1000", "4.00 KiB"},
      {"--io-chunk", "2G", "1.00 GiB"},
      {"--gpu-layers", "-1", "from 0 to"},
      {"--cpu-layers", "x", "from 0 to"},
      {"--cpu-ffn", "1000001", "0 to 1000000"},
  };
  for (const auto& [option, value, expected] : kCases) {
    StreamFlags flags;
    EXPECT_THAT(
        Parse({"-m", "a.gguf", option, value}, &flags),
        AllOf(HasSubstr(option), HasSubstr(expected), HasSubstr(value)));
  }
}

TEST(StreamFlagsTest, NothingOnTheGpuNeedsNoDevice) {
  StreamFlags flags;
  flags.device = DeviceChoice::kCpu;
  flags.gpu_layers = 0;
  EXPECT_TRUE(CheckStreamFlags(flags).ok());
  flags.gpu_layers = 1;
  EXPECT_THAT(CheckStreamFlags(flags).message(), HasSubstr("--gpu-layers"));
  flags.device = DeviceChoice::kAuto;
  EXPECT_TRUE(CheckStreamFlags(flags).ok());
}

TEST(StreamFlagsTest, TheModelIsRequired) {
  StreamFlags flags;
  EXPECT_THAT(Parse({"--json"}, &flags), HasSubstr("--model"));
}

}  // namespace
}  // namespace coldstream
