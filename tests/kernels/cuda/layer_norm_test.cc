#include "kernels/cuda/layer_norm.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/ops.h"
#include "tests/kernels/cuda/random_floats.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

struct Case {
  std::vector<float> x, weight, bias;
  float eps = 1e-5f;
  int64_t n() const { return static_cast<int64_t>(x.size()); }
};

Case RandomCase(int64_t n, double magnitude, double offset) {
  Case c{RandomFloats(n, magnitude, static_cast<unsigned>(n)),
         RandomFloats(n, 1, 2), RandomFloats(n, 1, 3)};
  for (float& x : c.x) x = static_cast<float>(x + offset);
  return c;
}

// Errors of the distances from the mean and of their norm, as sums of roundings
// over a thread's chain and a tree of ten levels.
std::vector<double> BoundsOf(const Case& c,
                             const std::vector<float>& expected) {
  const auto n = static_cast<double>(c.n());
  const double sum_error = (n / 512 + 12) * kRounding;
  double mean = 0, size = 0;
  for (const float x : c.x) {
    mean += x / n;
    size += std::fabs(x) / n;
  }
  double variance = 0, distance = 0;
  for (const float x : c.x) {
    variance += (x - mean) * (x - mean) / n;
    distance += std::fabs(x - mean) / n;
  }
  // Of the first mean; the distances' mean corrects it, to its own error.
  const double mean_error = sum_error * size;
  const double correction_error = sum_error * (distance + mean_error);
  const double base = variance + c.eps;
  const double variance_error = (sum_error + 4 * kRounding) *
                                    (variance + mean_error * mean_error) /
                                    base +
                                2 * mean_error * correction_error / base;
  std::vector<double> bounds;
  for (size_t i = 0; i < c.x.size(); ++i) {
    const double from_mean = std::fabs(c.x[i] - mean);
    const double distance_error =
        kRounding * (2 * from_mean + mean_error) + correction_error;
    const double scaled = std::fabs(c.weight[i]) / std::sqrt(base);
    bounds.push_back(scaled *
                         (distance_error +
                          from_mean * (variance_error / 2 + 5 * kRounding)) +
                     2 * kRounding * std::fabs(expected[i]) + 1e-45);
  }
  return bounds;
}

void ExpectAsTheScalarRow(const Case& c, bool biased) {
  const Ops& scalar = **OpsFor(Isa::kScalar);
  const float* const bias = biased ? c.bias.data() : nullptr;
  std::vector<float> out(c.x.size()), expected(c.x.size());
  simt::ImmediateStream stream;
  ASSERT_THAT(cuda::LayerNorm(c.x.data(), nullptr, c.weight.data(), bias, c.eps,
                              1, c.n(), out.data(), &stream),
              IsOk());
  scalar.layer_norm(c.x.data(), c.weight.data(), bias, c.eps, c.n(),
                    expected.data());
  const std::vector<double> bounds = BoundsOf(c, expected);
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_NEAR(out[i], expected[i], bounds[i])
        << "n " << c.n() << ", index " << i;
}

TEST(CudaLayerNormTest, IsWithinRoundingOfTheScalarRow) {
  for (const int64_t n : {1, 7, 33, 511, 512, 513, 576, 2048, 5120})
    for (const bool biased : {false, true})
      ExpectAsTheScalarRow(RandomCase(n, 1, 0), biased);
}

TEST(CudaLayerNormTest, ARowFarFromZeroKeepsItsDigits) {
  ExpectAsTheScalarRow(RandomCase(3000, 1, 1000), true);
}

TEST(CudaLayerNormTest, SquaresBeyondTheRangeOfFloatsDoNotOverflow) {
  ExpectAsTheScalarRow(RandomCase(1000, 1e30, 0), false);
}

TEST(CudaLayerNormTest, NoBitDependsOnTheOrderOfThreadsOrOnOtherRows) {
  constexpr int64_t n = 1500;
  const auto x = RandomFloats(3 * n, 1, 3);
  const auto weight = RandomFloats(n, 1, 4);
  simt::ImmediateStream stream;
  std::vector<uint32_t> first;
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    std::vector<float> out(x.size());
    ASSERT_THAT(cuda::LayerNorm(x.data(), nullptr, weight.data(), nullptr,
                                1e-5f, 3, n, out.data(), &stream),
                IsOk());
    if (first.empty()) first = BitsOf(out);
    EXPECT_EQ(BitsOf(out), first) << NameOf(order);
    std::vector<float> alone(n);
    const std::vector<int32_t> row = {2};
    ASSERT_THAT(cuda::LayerNorm(x.data(), row.data(), weight.data(), nullptr,
                                1e-5f, 1, n, alone.data(), &stream),
                IsOk());
    EXPECT_EQ(alone, std::vector<float>(out.begin() + 2 * n, out.end()));
  }
}

TEST(CudaLayerNormTest, WorksInPlace) {
  Case c = RandomCase(700, 2, 1);
  std::vector<float> apart(c.x.size());
  simt::ImmediateStream stream;
  for (float* out : {apart.data(), c.x.data()})
    ASSERT_THAT(cuda::LayerNorm(c.x.data(), nullptr, c.weight.data(),
                                c.bias.data(), c.eps, 1, c.n(), out, &stream),
                IsOk());
  EXPECT_EQ(c.x, apart);
}

}  // namespace
}  // namespace coldstream
