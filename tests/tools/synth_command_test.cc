#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/checkpoint.h"
#include "kernels/ops.h"
#include "nlohmann/json.hpp"
#include "runtime/tokenizer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/command_run.h"

namespace coldstream {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Arguments of a small model; `more` adds to them, or changes the value of an
// option they have.
std::vector<std::string> SmallModel(const std::string& path,
                                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {
      "synth",   "--layers", "2",          "--hidden", "256",
      "--heads", "4",        "--kv-heads", "2",        "--ffn",
      "512",     "--vocab",  "3000",       "-o",       path};
  for (size_t i = 0; i < more.size(); ++i) {
    const auto there = std::ranges::find(arguments, more[i]);
    if (more[i].starts_with("--") && there != arguments.end()) {
      *(there + 1) = more[++i];
    } else {
      arguments.push_back(more[i]);
    }
  }
  return arguments;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t FilesIn(const TempDir& folder) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

class SynthTypesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(SynthTypesTest, OpensAndHasWeightsInASaneRange) {
  const TempDir folder;
  const std::string path = folder.Path("m.gguf");
  const CommandRun run =
      RunColdstream(SmallModel(path, {"--type", GetParam()}));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const StatusOr<Checkpoint> checkpoint = Checkpoint::Open(path);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(checkpoint->warnings(), IsEmpty());
  ASSERT_EQ(checkpoint->tensors().size(), 2u * 9 + 3);
  const Ops* ops = *OpsFor(Isa::kScalar);
  for (const TensorInfo& tensor : checkpoint->tensors()) {
    std::vector<std::byte> bytes(tensor.extent.length);
    ASSERT_THAT(
        checkpoint->files()[0]->ReadExactly(tensor.extent.offset, bytes),
        IsOk());
    const int64_t n = tensor.cols() * tensor.rows();
    std::vector<float> weights(static_cast<size_t>(n));
    ops->MatmulFor(tensor.type).dequantize(bytes.data(), n, weights.data());
    double squares = 0;
    for (const float weight : weights) {
      ASSERT_TRUE(std::isfinite(weight)) << tensor.name;
      squares += double{weight} * weight;
    }
    const double deviation = std::sqrt(squares / static_cast<double>(n));
    const double expected =
        tensor.name.ends_with("output_norm.weight") ? 2.5
        : tensor.name.ends_with("norm.weight")
            ? 1.0
            : 1 / std::sqrt(static_cast<double>(tensor.cols()));
    EXPECT_NEAR(deviation / expected, 1, 0.05) << tensor.name;
  }
}

std::vector<std::string> AllTypeNames() {
  std::vector<std::string> names = {"q3_k_m", "q4_k_m", "q5_k_m"};
  for (const DTypeInfo& info : AllDTypes()) names.push_back(info.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Types, SynthTypesTest,
                         ::testing::ValuesIn(AllTypeNames()),
                         [](const auto& param) { return param.param; });

TEST(SynthCommandTest, TheFileDependsOnTheSeedAndNotOnTheThreads) {
  const TempDir folder;
  const auto file = [&](const char* name, const char* seed,
                        const char* threads) {
    const std::string path = folder.Path(name);
    // Large enough for several chunks a tensor.
    const CommandRun run =
        RunColdstream(SmallModel(path, {"--seed", seed, "-t", threads, "--ffn",
                                        "8192", "--type", "f16"}));
    EXPECT_EQ(run.exit_code, 0) << run.error;
    return Contents(path);
  };
  const std::string one = file("one", "7", "1");
  ASSERT_GT(one.size(), 10'000'000u);
  EXPECT_TRUE(one == file("two", "7", "2"));
  EXPECT_TRUE(one == file("five", "7", "5"));
  EXPECT_FALSE(one == file("other", "8", "2"));
}

TEST(SynthCommandTest, EveryArchitectureOpensWithItsOwnKeys) {
  const struct {
    const char* arch;
    const char* key;
    const char* pre;
    bool adds_bos;
  } kCases[] = {
      {"llama", "llama.attention.layer_norm_rms_epsilon", "llama-bpe", true},
      {"qwen2", "qwen2.attention.layer_norm_rms_epsilon", "qwen2", false},
      {"command-r", "command-r.logit_scale", "command-r", true},
  };
  for (const auto& [arch, key, pre, adds_bos] : kCases) {
    const TempDir folder;
    const std::string path = folder.Path("m.gguf");
    const CommandRun run = RunColdstream(SmallModel(path, {"--arch", arch}));
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const StatusOr<Checkpoint> checkpoint = Checkpoint::Open(path);
    ASSERT_THAT(checkpoint, IsOk());
    const Metadata& metadata = checkpoint->metadata();
    EXPECT_THAT(metadata.GetString("general.architecture"),
                IsOkAndHolds(std::string(arch)));
    EXPECT_TRUE(metadata.Has(key)) << key;
    EXPECT_THAT(metadata.GetString("tokenizer.ggml.pre"),
                IsOkAndHolds(std::string(pre)));
    const auto tokenizer = Tokenizer::Create(metadata);
    ASSERT_THAT(tokenizer, IsOk());
    EXPECT_EQ((*tokenizer)->vocab_size(), 3000);
    EXPECT_EQ((*tokenizer)->add_bos(), adds_bos);
    EXPECT_TRUE((*tokenizer)->IsEndOfGeneration(2999));
  }
}

TEST(SynthCommandTest, TheTokenizerRoundTripsAnyTextInFewTokens) {
  const TempDir folder;
  const std::string path = folder.Path("m.gguf");
  ASSERT_EQ(RunColdstream(SmallModel(path)).exit_code, 0);
  const StatusOr<Checkpoint> checkpoint = Checkpoint::Open(path);
  ASSERT_THAT(checkpoint, IsOk());
  const auto tokenizer = Tokenizer::Create(checkpoint->metadata());
  ASSERT_THAT(tokenizer, IsOk());
  const std::string english =
      " the other people should have come to the old house before winter";
  EXPECT_LT((*tokenizer)->Encode(english, SpecialTokens::kAsText).size(),
            english.size() / 3);
  std::string bytes;
  for (int i = 1; i < 256; ++i) bytes += static_cast<char>(i);
  for (const std::string& text :
       {english, std::string("Zürich, 東京 \U0001f600\n\n\t  x=1;"), bytes}) {
    const std::vector<TokenId> ids =
        (*tokenizer)->Encode(text, SpecialTokens::kAsText);
    EXPECT_EQ((*tokenizer)->DecodeAll(ids), text);
  }
}

TEST(SynthCommandTest, HeadsWiderThanTheirShareAreStatedInTheFile) {
  const TempDir folder;
  const std::string path = folder.Path("m.gguf");
  ASSERT_EQ(RunColdstream(SmallModel(path, {"--head-dim", "128"})).exit_code,
            0);
  const StatusOr<Checkpoint> checkpoint = Checkpoint::Open(path);
  ASSERT_THAT(checkpoint, IsOk());
  for (const char* key :
       {"llama.attention.key_length", "llama.attention.value_length",
        "llama.rope.dimension_count"})
    EXPECT_THAT(checkpoint->metadata().GetInt(key), IsOkAndHolds(128)) << key;
}

TEST(SynthCommandTest, DryRunPredictsTheFileToTheByteAndWritesNothing) {
  const TempDir folder;
  const std::string path = folder.Path("m.gguf");
  const CommandRun dry =
      RunColdstream(SmallModel(path, {"--dry-run", "--json"}));
  ASSERT_EQ(dry.exit_code, 0) << dry.error;
  EXPECT_EQ(FilesIn(folder), 0u);
  const CommandRun run = RunColdstream(SmallModel(path, {"--json"}));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const uint64_t size = std::filesystem::file_size(path);
  EXPECT_EQ(json::parse(dry.out)["file_bytes"], size);
  EXPECT_EQ(json::parse(run.out)["file_bytes"], size);
  EXPECT_EQ(FilesIn(folder), 1u);
}

TEST(SynthCommandTest, WithoutJsonStdoutStaysEmpty) {
  const TempDir folder;
  const CommandRun run = RunColdstream(SmallModel(folder.Path("m.gguf")));
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.error, HasSubstr("wrote"));
}

TEST(SynthCommandTest, RowsThatAreNoWholeBlocksFallBackWithALine) {
  const TempDir folder;
  const CommandRun run = RunColdstream(
      SmallModel(folder.Path("m.gguf"), {"--hidden", "224", "--type", "q4_k"}));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.error, HasSubstr("q5_0 instead of q4_k"));
}

TEST(SynthCommandTest, AWriteThatFailsLeavesNothingBehind) {
  const TempDir folder;
  const std::string path = folder.Write("m.gguf", "what was there before");
  const CommandRun run = RunColdstream(SmallModel(path, {"--type", "f32"}),
                                       {.file_bytes = 1 << 20});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("m.gguf"));
  EXPECT_EQ(std::ranges::count(run.error, '\n'), 1) << run.error;
  EXPECT_EQ(FilesIn(folder), 1u);
  EXPECT_EQ(Contents(path), "what was there before");
}

TEST(SynthCommandTest, TooLargeForTheDiskIsRefusedBeforeWriting) {
  const TempDir folder;
  // More than any file system here has.
  const CommandRun run = RunColdstream(
      {"synth", "--layers", "1024", "--hidden", "131072", "--heads", "1024",
       "--ffn", "1048576", "--type", "f32", "-o", folder.Path("m.gguf")});
  EXPECT_THAT(run.error, HasSubstr("free"));
  EXPECT_THAT(run.error, HasSubstr("needed"));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(FilesIn(folder), 0u);
}

TEST(SynthCommandTest, OnlyARegularFileIsEverReplaced) {
  const TempDir folder;
  for (const std::string& path : {folder.path(), std::string("/dev/null"),
                                  folder.Path("no/such/m.gguf")}) {
    const CommandRun run = RunColdstream(SmallModel(path));
    EXPECT_EQ(run.exit_code, 1) << path;
    EXPECT_THAT(run.error, HasSubstr(path));
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(FilesIn(folder), 0u);
}

TEST(SynthCommandTest, CtrlCExits130AndLeavesNothingBehind) {
  const TempDir folder;
  // Far from done when the first bytes are there.
  const CommandRun run =
      RunColdstream({"synth", "--preset", "tinyllama-1.1b", "--type", "f32",
                     "-o", folder.Path("m.gguf")},
                    {.interrupt_when = [&] { return FilesIn(folder) > 0; }});
  EXPECT_EQ(run.exit_code, 130) << run.error;
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_EQ(FilesIn(folder), 0u);
}

}  // namespace
}  // namespace coldstream
