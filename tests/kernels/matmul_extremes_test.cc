// Products of the largest numbers a block can hold with the largest
// activations: an intermediate sum of 16 bits that saturates would show here.

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/available_rows.h"
#include "tests/kernels/weight_rows.h"

namespace coldstream {
namespace {

constexpr int64_t kCols = 512;
constexpr int64_t kTokens = 3;

// Byte patterns of the packed numbers and group scales, one a row.
const std::vector<int>& Patterns() {
  static const std::vector<int> patterns = {0x00, 0x0f, 0x70, 0x7f, 0x80, 0x88,
                                            0x8f, 0xf0, 0xff, 0x3c, 0xc3, 0x55};
  return patterns;
}

// A row of each pattern, every block's scale 1 and minimum 0.
WeightRows ExtremeRows(DType type) {
  const int64_t rows = static_cast<int64_t>(Patterns().size());
  WeightRows weights(type, rows, kCols, 1);
  const DTypeInfo& info = InfoOf(type);
  const uint16_t one = 0x3c00;
  const HalfOffsets offsets = HalfOffsetsOf(type);
  const size_t row_bytes = weights.view().row_bytes();
  for (size_t row = 0; row < Patterns().size(); ++row) {
    for (size_t at = 0; at < row_bytes; at += info.block_bytes) {
      std::byte* block = weights.data() + row * row_bytes + at;
      std::memset(block, Patterns()[row], info.block_bytes);
      if (type == DType::kMXFP4) {
        block[0] = std::byte{128};
        continue;
      }
      std::memcpy(block + offsets.scale, &one, sizeof(one));
      if (offsets.minimum >= 0) std::memset(block + offsets.minimum, 0, 2);
    }
  }
  return weights;
}

// All 127, all -127, and the two in turn: the scale is exactly 1.
std::vector<float> ExtremeActivations() {
  std::vector<float> x;
  for (int64_t i = 0; i < kCols; ++i) x.push_back(127);
  for (int64_t i = 0; i < kCols; ++i) x.push_back(-127);
  for (int64_t i = 0; i < kCols; ++i) x.push_back(i % 2 == 0 ? 127 : -127);
  return x;
}

// `tokens` of kTokens at a time: one may have a kernel of its own.
void ExpectExact(const Ops& ops, DType type, int64_t tokens) {
  const MatmulKernel& kernel = ops.MatmulFor(type);
  WeightRows weights = ExtremeRows(type);
  const std::vector<float> w = weights.Values();
  const std::vector<float> x = ExtremeActivations();
  const uint64_t stride = ActivationRowBytes(kernel.format, kCols);
  std::vector<std::byte> activations(kTokens * stride);
  for (int64_t t = 0; t < kTokens; ++t)
    ops.quantize[static_cast<size_t>(kernel.format)](
        x.data() + t * kCols, kCols,
        activations.data() + static_cast<uint64_t>(t) * stride);
  const int64_t rows = weights.view().rows;
  std::vector<float> out(static_cast<size_t>(kTokens * rows));
  for (int64_t t = 0; t < kTokens; t += tokens) {
    kernel.rows(
        {.weight = weights.view(),
         .activations = activations.data() + static_cast<uint64_t>(t) * stride,
         .activation_stride = stride,
         .tokens = tokens,
         .out = out.data() + t * rows,
         .out_stride = rows},
        0, rows);
  }
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t r = 0; r < rows; ++r) {
      double expected = 0;
      double magnitude = 0;
      for (int64_t i = 0; i < kCols; ++i) {
        const double product = double{w[static_cast<size_t>(r * kCols + i)]} *
                               double{x[static_cast<size_t>(t * kCols + i)]};
        expected += product;
        magnitude += std::fabs(product);
      }
      // Sixteen blocks of 32, at most two roundings each, and a tree.
      ASSERT_NEAR(out[static_cast<size_t>(t * rows + r)], expected,
                  40 * kFloatRounding * magnitude)
          << InfoOf(type).name << ", " << ops.name << ", token " << t << ", "
          << tokens << " at a time"
          << ", pattern " << Patterns()[static_cast<size_t>(r)];
    }
  }
}

TEST(MatmulExtremesTest, TheLargestNumbersOfABlockDoNotSaturate) {
  for (const Ops* ops : AvailableRows())
    for (const DTypeInfo& info : AllDTypes())
      for (const int64_t tokens : {int64_t{1}, kTokens})
        if (info.block_elements > 1) ExpectExact(*ops, info.type, tokens);
}

}  // namespace
}  // namespace coldstream
