#include "io/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kGolden = COLDSTREAM_TEST_DATA "/golden/";

std::vector<std::string> GoldenModels() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden)) {
    if (entry.path().extension() == ".gguf")
      names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(CheckpointTest, OpensEveryGoldenModelWithoutWarnings) {
  const std::vector<std::string> names = GoldenModels();
  ASSERT_GE(names.size(), 19u);
  for (const std::string& name : names) {
    const auto checkpoint =
        Checkpoint::Open(kGolden + name, {DirectMode::kOff});
    ASSERT_THAT(checkpoint, IsOk()) << name;
    EXPECT_THAT(checkpoint->warnings(), IsEmpty()) << name;
    EXPECT_EQ(checkpoint->format(), "GGUF v3");
    EXPECT_THAT(checkpoint->metadata().GetStrings("tokenizer.ggml.tokens"),
                IsOk())
        << name;
    EXPECT_GT(checkpoint->tensors().size(), 10u);
    EXPECT_LT(checkpoint->tensor_bytes(), checkpoint->files()[0]->size());
    EXPECT_THAT(checkpoint->CheckUnchanged(), IsOk());
  }
}

TEST(CheckpointTest, ReportsWhatAGoldenModelHolds) {
  const auto checkpoint = Checkpoint::Open(kGolden + "llama.f32.gguf");
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(checkpoint->metadata().GetString("general.architecture"),
              IsOkAndHolds("llama"));
  EXPECT_THAT(checkpoint->metadata().GetInt("llama.embedding_length"),
              IsOkAndHolds(256));
  const TensorInfo* embedding = checkpoint->Find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_THAT(embedding->shape, ElementsAre(256u, 384u));
  EXPECT_EQ(embedding->cols(), 256);
  EXPECT_EQ(embedding->rows(), 384);
  EXPECT_EQ(embedding->type, DType::kF32);
  EXPECT_EQ(embedding->extent.length, 256u * 384 * 4);
  EXPECT_THAT(
      checkpoint->Get("blk.99.attn_q.weight"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("blk.99.attn_q.weight")));
}

TEST(CheckpointTest, WarnsOnceAFileWhenDirectReadsAreRefused) {
  CheckpointOptions options;
  options.direct_probe = [](int, uint64_t) -> StatusOr<DirectAlignment> {
    return absl::UnavailableError("reading with O_DIRECT: Invalid argument");
  };
  const std::string path = kGolden + "llama.q4_0.gguf";
  const auto checkpoint = Checkpoint::Open(path, options);
  ASSERT_THAT(checkpoint, IsOk());
  ASSERT_EQ(checkpoint->warnings().size(), 1u);
  EXPECT_THAT(checkpoint->warnings()[0],
              AllOf(HasSubstr(path), HasSubstr("page cache"),
                    HasSubstr("Invalid argument")));
  EXPECT_FALSE(checkpoint->files()[0]->direct());

  options.direct = DirectMode::kOn;
  EXPECT_THAT(Checkpoint::Open(path, options),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(path)));
}

TEST(CheckpointTest, NoticesThatItsFileChanged) {
  const TempDir dir;
  const std::string path = dir.Path("m.gguf");
  std::filesystem::copy(kGolden + "llama.q4_0.gguf", path);
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(checkpoint->CheckUnchanged(), IsOk());
  std::filesystem::resize_file(path, 1000);
  EXPECT_THAT(checkpoint->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path)));
}

}  // namespace
}  // namespace coldstream
