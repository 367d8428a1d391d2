#include "kernels/cuda/rms_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/ops.h"
#include "tests/kernels/cuda/random_floats.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

// The sum of squares: a chain of a thread's values, a tree of ten levels; half
// of its error is left by the root. Then the mean, eps, the root, its inverse
// and two products; and the scalar row's own rounding.
double RelativeBound(int64_t n) {
  const double chain = static_cast<double>(n) / 512 + 1;
  return ((chain + 12) / 2 + 6) * kRounding;
}

void ExpectAsTheScalarRow(int64_t rows, int64_t n, double magnitude,
                          float eps) {
  const Ops& scalar = **OpsFor(Isa::kScalar);
  const auto x = RandomFloats(rows * n, magnitude, static_cast<unsigned>(n));
  const auto weight = RandomFloats(n, 1, 2);
  std::vector<float> out(x.size());
  simt::ImmediateStream stream;
  ASSERT_THAT(cuda::RmsNorm(x.data(), nullptr, weight.data(), eps, rows, n,
                            out.data(), &stream),
              IsOk());
  std::vector<float> expected(x.size());
  for (int64_t row = 0; row < rows; ++row)
    scalar.rms_norm(x.data() + row * n, weight.data(), eps, n,
                    expected.data() + row * n);
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_NEAR(out[i], expected[i],
                RelativeBound(n) * std::fabs(double{expected[i]}) + 1e-45)
        << "n " << n << ", index " << i;
}

TEST(CudaRmsNormTest, IsWithinRoundingOfTheScalarRow) {
  for (const int64_t n : {1, 7, 31, 33, 511, 512, 513, 576, 2048, 5120})
    ExpectAsTheScalarRow(3, n, 1, 1e-5f);
}

TEST(CudaRmsNormTest, SquaresBeyondTheRangeOfFloatsDoNotOverflow) {
  ExpectAsTheScalarRow(2, 1000, 1e30, 1e-6f);
}

TEST(CudaRmsNormTest, EpsilonDominatesForTinyInputs) {
  ExpectAsTheScalarRow(2, 130, 1e-12, 1e-5f);
}

TEST(CudaRmsNormTest, NoBitDependsOnTheOrderOfThreadsOrOnOtherRows) {
  constexpr int64_t kRows = 4, n = 1500;
  const auto x = RandomFloats(kRows * n, 1, 3);
  const auto weight = RandomFloats(n, 1, 4);
  simt::ImmediateStream stream;
  std::vector<uint32_t> first;
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    std::vector<float> out(x.size());
    ASSERT_THAT(cuda::RmsNorm(x.data(), nullptr, weight.data(), 1e-5f, kRows, n,
                              out.data(), &stream),
                IsOk());
    if (first.empty()) first = BitsOf(out);
    EXPECT_EQ(BitsOf(out), first) << NameOf(order);
    std::vector<float> alone(n);
    ASSERT_THAT(cuda::RmsNorm(x.data() + 2 * n, nullptr, weight.data(), 1e-5f,
                              1, n, alone.data(), &stream),
                IsOk());
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), out.begin() + 2 * n));
  }
}

TEST(CudaRmsNormTest, WorksInPlace) {
  constexpr int64_t n = 777;
  auto x = RandomFloats(n, 2, 5);
  const auto weight = RandomFloats(n, 1, 6);
  std::vector<float> apart(n);
  simt::ImmediateStream stream;
  ASSERT_THAT(cuda::RmsNorm(x.data(), nullptr, weight.data(), 1e-5f, 1, n,
                            apart.data(), &stream),
              IsOk());
  ASSERT_THAT(cuda::RmsNorm(x.data(), nullptr, weight.data(), 1e-5f, 1, n,
                            x.data(), &stream),
              IsOk());
  EXPECT_EQ(x, apart);
}

TEST(CudaRmsNormTest, GathersRowsPastFourGibibytes) {
  constexpr int64_t n = 1024;
  const std::vector<int32_t> rows = {0, 3000000};
  const SparseMemory memory(size_t{3000001} * n * sizeof(float));
  auto* const x = reinterpret_cast<float*>(memory.data());
  const auto far = RandomFloats(n, 1, 7);
  std::copy(far.begin(), far.end(), x + int64_t{rows[1]} * n);
  const std::vector<float> weight(n, 1);
  std::vector<float> expected(n), out(2 * n);
  simt::ImmediateStream stream;
  ASSERT_THAT(cuda::RmsNorm(far.data(), nullptr, weight.data(), 1e-5f, 1, n,
                            expected.data(), &stream),
              IsOk());
  ASSERT_THAT(cuda::RmsNorm(x, rows.data(), weight.data(), 1e-5f, 2, n,
                            out.data(), &stream),
              IsOk());
  EXPECT_EQ(std::vector<float>(out.begin() + n, out.end()), expected);
  EXPECT_EQ(out[0], 0);
}

TEST(CudaRmsNormTest, NanStaysInItsRow) {
  constexpr int64_t n = 600;
  auto x = RandomFloats(2 * n, 1, 8);
  x[n + 5] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> weight(n, 1);
  std::vector<float> out(x.size());
  simt::ImmediateStream stream;
  ASSERT_THAT(cuda::RmsNorm(x.data(), nullptr, weight.data(), 1e-5f, 2, n,
                            out.data(), &stream),
              IsOk());
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(std::isnan(out[i]), i >= n) << i;
}

}  // namespace
}  // namespace coldstream
