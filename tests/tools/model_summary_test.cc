#include "tools/model_summary.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coldstream {
namespace {

TensorInfo Tensor(std::string name, DType type, std::vector<uint64_t> shape) {
  TensorInfo tensor;
  tensor.name = std::move(name);
  tensor.type = type;
  tensor.shape = std::move(shape);
  uint64_t rows = 1;
  for (size_t i = 1; i < tensor.shape.size(); ++i) rows *= tensor.shape[i];
  tensor.extent.length = rows * RowBytes(type, tensor.shape[0]);
  return tensor;
}

TEST(ModelSummaryTest, PutsEveryTensorWhereItBelongs) {
  const std::vector<TensorInfo> tensors = {
      Tensor("token_embd.weight", DType::kF16, {8, 10}),
      Tensor("blk.10.attn_q.weight", DType::kF16, {8, 8}),
      Tensor("blk.2.attn_norm.weight", DType::kF32, {8}),
      Tensor("blk.2.attn_q.weight", DType::kF16, {8, 8}),
      Tensor("blk.2.ffn_up.weight", DType::kF16, {8, 16}),
      Tensor("blk.2.post_norm.weight", DType::kF32, {8}),
      Tensor("output_norm.weight", DType::kF32, {8}),
      Tensor("output.weight", DType::kQ8_0, {32, 3}),
      Tensor("blk.x.attn_q.weight", DType::kF32, {4}),
      Tensor("blk.7", DType::kF32, {1}),
  };
  const ModelSummary summary = Summarise(tensors);
  EXPECT_EQ(summary.embedding, 160u);
  EXPECT_EQ(summary.head, 102u);
  EXPECT_EQ(summary.other, 32u + 16u + 4u);
  ASSERT_EQ(summary.layers.size(), 2u);
  EXPECT_EQ(summary.layers[0].layer, 2);
  EXPECT_EQ(summary.layers[0].attention, 32u + 128u);
  EXPECT_EQ(summary.layers[0].ffn, 256u);
  EXPECT_EQ(summary.layers[0].other, 32u);
  EXPECT_EQ(summary.layers[1].layer, 10);
  EXPECT_EQ(summary.layers[1].total(), 128u);
}

TEST(ModelSummaryTest, TotalsPerTypeAddUpToTheWhole) {
  const std::vector<TensorInfo> tensors = {
      Tensor("a", DType::kQ4_K, {256, 3}),
      Tensor("b", DType::kF32, {5}),
      Tensor("c", DType::kQ4_K, {512}),
  };
  const ModelSummary summary = Summarise(tensors);
  ASSERT_EQ(summary.types.size(), 2u);
  EXPECT_EQ(summary.types[0].type, DType::kF32);
  EXPECT_EQ(summary.types[0].bytes, 20u);
  EXPECT_EQ(summary.types[1].type, DType::kQ4_K);
  EXPECT_EQ(summary.types[1].tensors, 2u);
  EXPECT_EQ(summary.types[1].elements, 1280u);
  EXPECT_EQ(summary.types[1].bytes, 5u * 144u);
  EXPECT_EQ(summary.tensors, 3u);
  EXPECT_EQ(summary.elements, 1285u);
  EXPECT_EQ(summary.bytes, 20u + 5u * 144u);
}

}  // namespace
}  // namespace coldstream
