#include "tools/random_blocks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/ops.h"

namespace coldstream {
namespace {

constexpr double kStddev = 1.0 / 64;
constexpr size_t kElements = size_t{1} << 20;

std::vector<std::byte> Bytes(const RandomBlocks& blocks, DType type,
                             size_t elements, uint64_t seed) {
  std::vector<std::byte> bytes(RowBytes(type, elements));
  blocks.Fill(seed, bytes);
  return bytes;
}

std::vector<float> Weights(DType type, const std::vector<std::byte>& bytes,
                           size_t elements) {
  std::vector<float> weights(elements);
  const Ops* ops = *OpsFor(Isa::kScalar);
  ops->MatmulFor(type).dequantize(bytes.data(), static_cast<int64_t>(elements),
                                  weights.data());
  return weights;
}

class RandomBlocksTest : public ::testing::TestWithParam<DTypeInfo> {};

TEST_P(RandomBlocksTest, WeightsHaveMeanZeroAndTheDeviationAskedFor) {
  const DType type = GetParam().type;
  const RandomBlocks blocks(type, kStddev);
  const std::vector<float> weights =
      Weights(type, Bytes(blocks, type, kElements, 1), kElements);
  double sum = 0;
  double squares = 0;
  float largest = 0;
  for (const float weight : weights) {
    ASSERT_TRUE(std::isfinite(weight));
    sum += weight;
    squares += double{weight} * weight;
    largest = std::max(largest, std::abs(weight));
  }
  const double mean = sum / kElements;
  // The scales are f16 and blocks share one, so the deviation is off by more
  // than independent draws would be: 2 % is five times what is seen.
  EXPECT_NEAR(std::sqrt(squares / kElements) / kStddev, 1, 0.02);
  EXPECT_NEAR(mean / kStddev, 0, 0.02);
  EXPECT_LT(largest, 6 * kStddev);
}

TEST_P(RandomBlocksTest, BytesDependOnTheSeedAlone) {
  const DType type = GetParam().type;
  const std::vector<std::byte> first =
      Bytes(RandomBlocks(type, kStddev), type, 2560, 5);
  EXPECT_EQ(first, Bytes(RandomBlocks(type, kStddev), type, 2560, 5));
  EXPECT_NE(first, Bytes(RandomBlocks(type, kStddev), type, 2560, 6));
}

TEST_P(RandomBlocksTest, ALongerFillBeginsLikeAShorterOne) {
  const DType type = GetParam().type;
  const RandomBlocks blocks(type, kStddev);
  const std::vector<std::byte> shorter = Bytes(blocks, type, 256, 5);
  std::vector<std::byte> longer = Bytes(blocks, type, 2560, 5);
  longer.resize(shorter.size());
  EXPECT_EQ(shorter, longer);
}

TEST_P(RandomBlocksTest, NoTwoRowsAreAlike) {
  const DType type = GetParam().type;
  const std::vector<std::byte> bytes =
      Bytes(RandomBlocks(type, kStddev), type, kElements, 2);
  const size_t row = RowBytes(type, 256);
  std::vector<std::string_view> rows;
  for (size_t at = 0; at < bytes.size(); at += row)
    rows.emplace_back(reinterpret_cast<const char*>(bytes.data()) + at, row);
  std::ranges::sort(rows);
  EXPECT_EQ(std::ranges::adjacent_find(rows), rows.end());
}

INSTANTIATE_TEST_SUITE_P(Types, RandomBlocksTest,
                         ::testing::ValuesIn(AllDTypes().begin(),
                                             AllDTypes().end()),
                         [](const auto& param) {
                           return std::string(param.param.name);
                         });

TEST(RandomBlocksValuesTest, Q8AndTheScalesOfQ6NeverHoldMinus128) {
  const auto expect_none = [](DType type, size_t begin, size_t end) {
    const std::vector<std::byte> bytes =
        Bytes(RandomBlocks(type, kStddev), type, kElements, 3);
    const size_t block = InfoOf(type).block_bytes;
    bool has_minus_127 = false;
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (i % block < begin || i % block >= end) continue;
      ASSERT_NE(bytes[i], std::byte{0x80});
      has_minus_127 = has_minus_127 || bytes[i] == std::byte{0x81};
    }
    EXPECT_TRUE(has_minus_127);
  };
  expect_none(DType::kQ8_0, 2, 34);
  expect_none(DType::kQ6_K, 192, 208);
}

TEST(RandomBlocksValuesTest, FloatsLieAroundTheirMean) {
  const RandomBlocks blocks = RandomBlocks::Floats(40, 4);
  std::vector<float> values(10000);
  blocks.Fill(1, std::as_writable_bytes(std::span(values)));
  double sum = 0;
  for (const float value : values) {
    EXPECT_NEAR(value, 40, 5 * 4);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 40, 5 * 4 / std::sqrt(10000));
}

}  // namespace
}  // namespace coldstream
