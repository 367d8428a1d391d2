#include "kernels/cuda/quantize.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/ops.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"

namespace coldstream {
namespace {

constexpr ActivationFormat kFormats[] = {ActivationFormat::kQ8_32,
                                         ActivationFormat::kQ8_256};

// Whole steps and halves of them among the rest: ties must go the same way.
std::vector<float> RandomRows(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 30);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = normal(random);
  for (size_t i = 0; i < x.size(); i += 2) x[i] = std::round(2 * x[i]) / 2;
  for (size_t i = 0; i < x.size(); i += 64) x[i] = 127;
  return x;
}

void ExpectScalarBytes(ActivationFormat format, const std::vector<float>& x,
                       int64_t rows) {
  const Ops& scalar = **OpsFor(Isa::kScalar);
  const int64_t k = static_cast<int64_t>(x.size()) / rows;
  const size_t row_bytes = ActivationRowBytes(format, k);
  const std::byte untouched{0x5a};
  std::vector<std::byte> expected(static_cast<size_t>(rows) * row_bytes,
                                  untouched);
  std::vector<std::byte> out = expected;
  for (int64_t r = 0; r < rows; ++r) {
    scalar.quantize[static_cast<size_t>(format)](
        x.data() + r * k, k,
        expected.data() + static_cast<size_t>(r) * row_bytes);
  }
  simt::ImmediateStream stream;
  ASSERT_TRUE(
      cuda::Quantize(format, x.data(), rows, k, out.data(), &stream).ok());
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out[i], expected[i])
        << "byte " << i % row_bytes << " of row " << i / row_bytes << ", k "
        << k << ", format " << static_cast<int>(format);
}

TEST(CudaQuantizeTest, BytesAreThoseOfTheScalarRow) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const ActivationFormat format : kFormats)
      for (const int64_t blocks : {1, 2, 3, 5, 9})
        for (const int64_t rows : {1, 3, 9})
          ExpectScalarBytes(
              format, RandomRows(rows * blocks * 256, unsigned(blocks)), rows);
    ExpectScalarBytes(ActivationFormat::kQ8_32, RandomRows(3 * 160, 6), 3);
  }
}

TEST(CudaQuantizeTest, ZerosTheTinyAndTheLargestAreAsInTheScalarRow) {
  for (const ActivationFormat format : kFormats)
    for (const float value : {0.0f, -0.0f, 0x1p-140f, -0x1p-130f, 0x1p-119f,
                              std::numeric_limits<float>::max()})
      ExpectScalarBytes(format, std::vector<float>(512, value), 1);
}

TEST(CudaQuantizeTest, ANonFiniteValueIsAsInTheScalarRow) {
  for (const ActivationFormat format : kFormats) {
    for (const float bad : {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x = RandomRows(768, 9);
      x[300] = bad;
      ExpectScalarBytes(format, x, 1);
    }
  }
}

}  // namespace
}  // namespace coldstream
