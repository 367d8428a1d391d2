#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/available_rows.h"

namespace coldstream {
namespace {

// Exact-size buffers, so that AddressSanitizer sees a read or write past them.
struct Case {
  std::vector<float> x;
  std::vector<float> weight;
};

Case RandomCase(size_t n, double magnitude, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Case c{std::vector<float>(n), std::vector<float>(n)};
  for (float& x : c.x) x = normal(random) * static_cast<float>(magnitude);
  for (float& w : c.weight) w = normal(random);
  return c;
}

void ExpectNearReference(const Ops& ops, const Case& c, float eps) {
  const size_t n = c.x.size();
  std::vector<float> out(n);
  ops.rms_norm(c.x.data(), c.weight.data(), eps, static_cast<int64_t>(n),
               out.data());
  long double squares = 0;
  for (const float x : c.x) squares += static_cast<long double>(x) * x;
  const long double rms =
      std::sqrt(squares / static_cast<long double>(n) + eps);
  for (size_t i = 0; i < n; ++i) {
    const double expected =
        static_cast<double>(static_cast<long double>(c.x[i]) / rms *
                            static_cast<long double>(c.weight[i]));
    // The factor, two products and the store: four roundings at most.
    const double bound = 4 * kFloatRounding * std::fabs(expected) + 1e-45;
    ASSERT_NEAR(out[i], expected, bound)
        << ops.name << ", n " << n << ", index " << i;
  }
}

TEST(RmsNormTest, EveryRowIsWithinRoundingOfTheFormula) {
  for (const Ops* ops : AvailableRows())
    for (const size_t n : {1, 7, 8, 15, 16, 17, 33, 64, 100, 576, 2048, 5120})
      ExpectNearReference(*ops, RandomCase(n, 1, static_cast<unsigned>(n)),
                          1e-5f);
}

TEST(RmsNormTest, SquaresBeyondTheRangeOfFloatsDoNotOverflow) {
  for (const Ops* ops : AvailableRows())
    ExpectNearReference(*ops, RandomCase(1000, 1e30, 3), 1e-6f);
}

TEST(RmsNormTest, EpsilonDominatesForTinyInputs) {
  for (const Ops* ops : AvailableRows())
    ExpectNearReference(*ops, RandomCase(130, 1e-12, 4), 1e-5f);
}

TEST(RmsNormTest, WorksInPlace) {
  for (const Ops* ops : AvailableRows()) {
    Case c = RandomCase(77, 2, 5);
    std::vector<float> apart(c.x.size());
    ops->rms_norm(c.x.data(), c.weight.data(), 1e-5f, 77, apart.data());
    ops->rms_norm(c.x.data(), c.weight.data(), 1e-5f, 77, c.x.data());
    EXPECT_EQ(c.x, apart) << ops->name;
  }
}

}  // namespace
}  // namespace coldstream
