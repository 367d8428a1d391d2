#include "graphs/weight_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Mapped {
  TempDir dir;
  Checkpoint checkpoint;
  WeightMap map;
};

StatusOr<std::unique_ptr<Mapped>> MapOf(
    const TinyModelOptions& options, uint64_t unit_bytes = kDefaultUnitBytes) {
  auto mapped = std::make_unique<Mapped>();
  const std::string path = mapped->dir.Path("m.gguf");
  RETURN_IF_ERROR(WriteTinyModel(path, options));
  ASSIGN_OR_RETURN(mapped->checkpoint, Checkpoint::Open(path));
  ASSIGN_OR_RETURN(const ModelConfig config,
                   LoadModelConfig(mapped->checkpoint));
  ASSIGN_OR_RETURN(mapped->map,
                   MapWeights(mapped->checkpoint, config, unit_bytes));
  return mapped;
}

TEST(WeightMapTest, UnitsComeInTheOrderOfAPass) {
  const auto mapped = MapOf({.layers = 2});
  ASSERT_THAT(mapped.status(), IsOk());
  const WeightMap& map = (*mapped)->map;
  std::vector<std::string> names;
  for (const WeightUnit& unit : map.units) names.push_back(unit.name);
  EXPECT_THAT(names, ElementsAre("vectors", "blk.0.attention", "blk.0.ffn",
                                 "blk.1.attention", "blk.1.ffn", "output"));
  EXPECT_TRUE(map.units[kVectorUnit].pinned);
  EXPECT_TRUE(map.matrices[kVectorUnit].empty());
}

// However small the units: the matrices in the order of a pass, each row once.
TEST(WeightMapTest, CutUnitsHoldEveryRowOnceInOrder) {
  for (uint64_t unit_bytes : {1u, 5000u, 30000u, 1u << 20}) {
    const auto mapped = MapOf({.vocab = 5000, .tied = true}, unit_bytes);
    ASSERT_THAT(mapped.status(), IsOk());
    const WeightMap& map = (*mapped)->map;
    EXPECT_TRUE(map.tied);
    std::vector<MatrixRows> whole;  // the slices put together again
    for (size_t unit = 1; unit < map.units.size(); ++unit) {
      ASSERT_FALSE(map.matrices[unit].empty());
      for (const MatrixRows& rows : map.matrices[unit]) {
        if (rows.row_begin == 0) {
          EXPECT_TRUE(whole.empty() || whole.back().last);
          whole.push_back(rows);
          continue;
        }
        EXPECT_EQ(rows.row_begin % 64, 0);
        EXPECT_EQ(rows.row_begin, whole.back().weight.rows);
        EXPECT_EQ(rows.kind, whole.back().kind);
        EXPECT_EQ(rows.layer, whole.back().layer);
        whole.back().weight.rows += rows.weight.rows;
        whole.back().last = rows.last;
      }
    }
    ASSERT_EQ(whole.size(), 2u * 7u + 1u);
    for (size_t i = 0; i + 1 < whole.size(); ++i) {
      EXPECT_EQ(whole[i].kind, static_cast<MatrixKind>(i % 7));
      EXPECT_EQ(whole[i].layer, static_cast<int64_t>(i / 7));
      EXPECT_TRUE(whole[i].last);
    }
    EXPECT_EQ(whole.back().kind, MatrixKind::kHead);
    EXPECT_EQ(whole.back().weight.rows, 5000);
  }
}

TEST(WeightMapTest, UnitsAreEvenAndNoLargerThanAskedButForATile) {
  const auto mapped = MapOf({.vocab = 5000}, 40000);
  ASSERT_THAT(mapped.status(), IsOk());
  const WeightMap& map = (*mapped)->map;
  uint64_t smallest = ~uint64_t{0}, tile = 0;
  for (size_t unit = 1; unit < map.units.size(); ++unit) {
    if (map.matrices[unit].front().kind != MatrixKind::kHead) continue;
    const WeightRef& rows = map.matrices[unit].front().weight;
    tile = 64 * RowBytes(rows.type, static_cast<uint64_t>(rows.cols));
    EXPECT_LE(map.units[unit].weight_bytes(), 40000 + tile);
    if (!map.matrices[unit].front().last)
      smallest = std::min(smallest, map.units[unit].weight_bytes());
  }
  EXPECT_GE(smallest, 20000u);
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
