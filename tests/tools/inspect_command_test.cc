#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_dir.h"
#include "tests/tools/command_run.h"

namespace coldstream {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A small model at `path`.
void MakeModel(const std::string& path, const char* type = "q4_k_m") {
  const CommandRun run =
      RunColdstream({"synth", "--layers", "4", "--hidden", "256", "--heads",
                     "4", "--kv-heads", "2", "--ffn", "512", "--vocab", "600",
                     "--type", type, "-o", path});
  ASSERT_EQ(run.exit_code, 0) << run.error;
}

size_t LongestLine(const std::string& text) {
  std::istringstream lines(text);
  size_t longest = 0;
  for (std::string line; std::getline(lines, line);)
    longest = std::max(longest, line.size());
  return longest;
}

TEST(InspectCommandTest, ShowsMetadataLayersEmbeddingHeadAndTypes) {
  const TempDir folder;
  const std::string path = folder.Path("m.gguf");
  MakeModel(path);
  const CommandRun run = RunColdstream({"inspect", path});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.error, IsEmpty());
  for (const char* expected :
       {"m.gguf", "GGUF v3", "general.architecture = ", "llama.block_count = 4",
        "attention", "ffn", "embedding", "head", "q4_k", "q6_k", "f32"})
    EXPECT_THAT(run.out, HasSubstr(expected));
  EXPECT_THAT(run.out, Not(HasSubstr("blk.0.attn_q.weight")));
  // The vocabulary is shortened.
  EXPECT_LT(LongestLine(run.out), 200u);
}

TEST(InspectCommandTest, ListsTensorsWhereAskedFor) {
  const TempDir folder;
  const std::string path = folder.Path("m.gguf");
  MakeModel(path);
  const CommandRun run = RunColdstream({"inspect", "--tensors", path});
  for (const char* expected :
       {"token_embd.weight", "blk.3.ffn_down.weight", "[512, 256]", "offset"})
    EXPECT_THAT(run.out, HasSubstr(expected));
}

TEST(InspectCommandTest, JsonHasEverythingAndAddsUp) {
  const TempDir folder;
  const std::string path = folder.Path("m.gguf");
  MakeModel(path);
  const CommandRun run = RunColdstream({"inspect", "--json", path});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const json model = json::parse(run.out);
  EXPECT_EQ(model["format"], "GGUF v3");
  EXPECT_EQ(model["files"][0]["path"], path);
  EXPECT_EQ(model["metadata"]["llama.block_count"], 4);
  EXPECT_EQ(model["metadata"]["tokenizer.ggml.tokens"]["count"], 600);
  EXPECT_EQ(model["metadata"]["tokenizer.ggml.tokens"]["first"].size(), 8u);
  ASSERT_EQ(model["tensors"].size(), 4u * 9 + 3);
  ASSERT_EQ(model["layers"].size(), 4u);
  uint64_t tensor_bytes = 0;
  for (const json& tensor : model["tensors"])
    tensor_bytes += tensor["bytes"].get<uint64_t>();
  EXPECT_EQ(model["tensor_bytes"], tensor_bytes);
  uint64_t parts = model["embedding_bytes"].get<uint64_t>() +
                   model["head_bytes"].get<uint64_t>() +
                   model["other_bytes"].get<uint64_t>();
  for (const json& layer : model["layers"])
    parts += layer["bytes"].get<uint64_t>();
  EXPECT_EQ(parts, tensor_bytes);
  EXPECT_EQ(model["tensors"][0]["name"], "token_embd.weight");
  EXPECT_EQ(model["tensors"][0]["shape"], json::array({256, 600}));
  EXPECT_EQ(model["tensors"][0]["type"], "q4_k");
}

TEST(InspectCommandTest, ArraysComeWholeWhereAskedFor) {
  const TempDir folder;
  const std::string path = folder.Path("m.gguf");
  MakeModel(path);
  const json model =
      json::parse(RunColdstream({"inspect", "--json", "--arrays", path}).out);
  EXPECT_EQ(model["metadata"]["tokenizer.ggml.tokens"].size(), 600u);
}

TEST(InspectCommandTest, ABadFileInAFolderIsReportedAndTheOthersShown) {
  const TempDir folder;
  MakeModel(folder.Path("a.gguf"));
  folder.Write("b.gguf", "GGUF but not really");
  MakeModel(folder.Path("c.gguf"), "q8_0");
  const CommandRun text = RunColdstream({"inspect", folder.path()});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.out, HasSubstr("a.gguf"));
  EXPECT_THAT(text.out, HasSubstr("c.gguf"));
  EXPECT_THAT(text.error, HasSubstr("b.gguf"));
  EXPECT_EQ(std::ranges::count(text.error, '\n'), 1) << text.error;

  const CommandRun run = RunColdstream({"inspect", "--json", folder.path()});
  EXPECT_EQ(run.exit_code, 1);
  const json models = json::parse(run.out);
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0]["files"][0]["path"], folder.Path("a.gguf"));
  EXPECT_EQ(models[1]["path"], folder.Path("b.gguf"));
  EXPECT_THAT(models[1]["error"].get<std::string>(), HasSubstr("b.gguf"));
  EXPECT_EQ(models[2]["types"][1]["type"], "q8_0");
}

TEST(InspectCommandTest, AMissingFileExits1WithOneLine) {
  const TempDir folder;
  const CommandRun run = RunColdstream({"inspect", folder.Path("none.gguf")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.error, HasSubstr("none.gguf"));
  EXPECT_EQ(std::ranges::count(run.error, '\n'), 1) << run.error;
}

}  // namespace
}  // namespace coldstream
