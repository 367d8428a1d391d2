#include "graphs/weight_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Mapped {
  TempDir dir;
  Checkpoint checkpoint;
  WeightMap map;
};

StatusOr<std::unique_ptr<Mapped>> MapOf(const TinyModelOptions& options) {
  auto mapped = std::make_unique<Mapped>();
  const std::string path = mapped->dir.Path("m.gguf");
  RETURN_IF_ERROR(WriteTinyModel(path, options));
  ASSIGN_OR_RETURN(mapped->checkpoint, Checkpoint::Open(path));
  ASSIGN_OR_RETURN(const ModelConfig config,
                   LoadModelConfig(mapped->checkpoint));
  ASSIGN_OR_RETURN(mapped->map, MapWeights(mapped->checkpoint, config));
  return mapped;
}

TEST(WeightMapTest, UnitsComeInTheOrderOfAPass) {
  const auto mapped = MapOf({.layers = 2});
  ASSERT_THAT(mapped.status(), IsOk());
  const WeightMap& map = (*mapped)->map;
  ASSERT_GE(map.units.size(), 6u);
  EXPECT_EQ(map.units[0].name, "blk.0.attention");
  EXPECT_EQ(map.units[1].name, "blk.0.ffn");
  EXPECT_EQ(map.units[2].name, "blk.1.attention");
  EXPECT_EQ(map.units[4].name, "output_norm");
  EXPECT_TRUE(map.units[4].pinned);
  EXPECT_EQ(map.roles[5].kind, UnitKind::kHead);
}

// A vocabulary far larger than a layer: the head is cut, every row once.
TEST(WeightMapTest, TheHeadIsCutIntoUnitsNoLargerThanALayers) {
  for (bool tied : {false, true}) {
    const auto mapped = MapOf({.vocab = 5000, .tied = tied});
    ASSERT_THAT(mapped.status(), IsOk());
    const WeightMap& map = (*mapped)->map;
    EXPECT_EQ(map.tied, tied);
    uint64_t largest = 0;
    for (size_t i = 0; i < map.units.size(); ++i)
      if (map.roles[i].kind == UnitKind::kFfn)
        largest = std::max(largest, map.units[i].weight_bytes());
    int64_t next_row = 0;
    int pieces = 0;
    for (size_t i = 0; i < map.units.size(); ++i) {
      if (map.roles[i].kind != UnitKind::kHead) continue;
      EXPECT_LE(map.units[i].weight_bytes(), largest);
      EXPECT_EQ(map.roles[i].head_row_begin, next_row);
      next_row += map.roles[i].weight.rows;
      ++pieces;
    }
    EXPECT_EQ(next_row, 5000);
    EXPECT_GT(pieces, 1);
  }
}

TEST(WeightMapTest, EveryByteButTheEmbeddingBelongsToOneUnit) {
  const auto mapped = MapOf({.architecture = "qwen2"});
  ASSERT_THAT(mapped.status(), IsOk());
  const TensorInfo* embedding = (*mapped)->checkpoint.Find("token_embd.weight");
  EXPECT_EQ((*mapped)->map.weight_bytes(),
            (*mapped)->checkpoint.tensor_bytes() - embedding->extent.length);
}

TEST(WeightMapTest, AMissingTensorIsNamed) {
  for (const char* name :
       {"blk.1.ffn_up.weight", "output_norm.weight", "blk.0.attn_q.weight"}) {
    EXPECT_THAT(MapOf({.without = {name}}).status(),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(name)));
  }
  EXPECT_THAT(MapOf({.architecture = "qwen2", .without = {"blk.0.attn_k.bias"}})
                  .status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("attn_k.bias")));
}

TEST(WeightMapTest, ATensorTheGraphDoesNotUseIsAnError) {
  EXPECT_THAT(MapOf({.extra_tensors = {"blk.0.attn_q_norm.weight"}}).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("blk.0.attn_q_norm.weight")));
}

TEST(WeightMapTest, AWrongShapeNamesTensorExpectedAndGot) {
  TinyModelOptions options;
  options.metadata["llama.feed_forward_length"] = uint32_t{128};
  EXPECT_THAT(
      MapOf(options).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("ffn_"), HasSubstr("96"), HasSubstr("128"))));
}

TEST(WeightMapTest, OptionalBiasesAreUsedWhereTheyAre) {
  const auto mapped = MapOf({.extra_tensors = {"blk.0.attn_output.bias"}});
  ASSERT_THAT(mapped.status(), IsOk());
  EXPECT_TRUE((*mapped)->map.layers[0].attn_output_bias.present());
  EXPECT_FALSE((*mapped)->map.layers[1].attn_output_bias.present());
}

}  // namespace
}  // namespace coldstream
