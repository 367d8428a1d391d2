#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/available_rows.h"

namespace coldstream {
namespace {

struct Case {
  std::vector<float> x;
  std::vector<float> weight;
  std::vector<float> bias;  // empty: none
};

Case RandomCase(size_t n, double offset, bool bias, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Case c{std::vector<float>(n), std::vector<float>(n),
         std::vector<float>(bias ? n : 0)};
  for (float& x : c.x) x = normal(random) + static_cast<float>(offset);
  for (float& w : c.weight) w = normal(random);
  for (float& b : c.bias) b = normal(random);
  return c;
}

void ExpectNearReference(const Ops& ops, const Case& c, float eps) {
  const size_t n = c.x.size();
  std::vector<float> out(n);
  ops.layer_norm(c.x.data(), c.weight.data(),
                 c.bias.empty() ? nullptr : c.bias.data(), eps,
                 static_cast<int64_t>(n), out.data());
  long double mean = 0;
  long double largest = 0;
  for (const float x : c.x) {
    mean += x;
    largest = std::max(largest, std::fabs(static_cast<long double>(x)));
  }
  mean /= static_cast<long double>(n);
  long double variance = 0;
  for (const float x : c.x) variance += (x - mean) * (x - mean);
  variance /= static_cast<long double>(n);
  const long double inverse = 1 / std::sqrt(variance + eps);
  for (size_t i = 0; i < n; ++i) {
    const long double shift = c.bias.empty() ? 0.0f : c.bias[i];
    const double expected =
        static_cast<double>((c.x[i] - mean) * inverse * c.weight[i] + shift);
    // One rounding to float; sums of n doubles, with the mean's error shared
    // by every element.
    const double sums =
        static_cast<double>(largest * inverse * std::fabs(c.weight[i])) *
        static_cast<double>(n + 8) * 0x1p-52;
    ASSERT_NEAR(out[i], expected,
                kFloatRounding * std::fabs(expected) + sums + 1e-45)
        << ops.name << ", n " << n << ", index " << i;
  }
}

TEST(LayerNormTest, EveryRowIsWithinRoundingOfTheFormula) {
  for (const Ops* ops : AvailableRows())
    for (const size_t n : {2, 7, 8, 15, 16, 17, 33, 100, 768, 8192})
      for (const bool bias : {false, true})
        ExpectNearReference(
            *ops, RandomCase(n, 0.5, bias, static_cast<unsigned>(n)), 1e-5f);
}

TEST(LayerNormTest, ALargeMeanDoesNotCancelTheVariance) {
  for (const Ops* ops : AvailableRows())
    ExpectNearReference(*ops, RandomCase(4000, 3e4, true, 9), 1e-5f);
}

TEST(LayerNormTest, WorksInPlace) {
  for (const Ops* ops : AvailableRows()) {
    Case c = RandomCase(53, 1, true, 5);
    std::vector<float> apart(c.x.size());
    ops->layer_norm(c.x.data(), c.weight.data(), c.bias.data(), 1e-5f, 53,
                    apart.data());
    ops->layer_norm(c.x.data(), c.weight.data(), c.bias.data(), 1e-5f, 53,
                    c.x.data());
    EXPECT_EQ(c.x, apart) << ops->name;
  }
}

}  // namespace
}  // namespace coldstream
