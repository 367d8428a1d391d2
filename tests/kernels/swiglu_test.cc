#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/available_rows.h"

namespace coldstream {
namespace {

void ExpectNearReference(const Ops& ops, const std::vector<float>& gate,
                         const std::vector<float>& up) {
  const size_t n = gate.size();
  std::vector<float> out(n);
  ops.swiglu(gate.data(), up.data(), static_cast<int64_t>(n), out.data());
  for (size_t i = 0; i < n; ++i) {
    const double g = gate[i];
    const double expected = g / (1 + std::exp(-g)) * up[i];
    // exp (2.2 roundings), twice for the sum; the sum, the quotient and two
    // products. Where exp(-|g|) is subnormal, half of one of its steps.
    const double bound = 9 * kFloatRounding * std::fabs(expected) +
                         std::fabs(g * double{up[i]}) * 0x1p-125 + 1e-45;
    ASSERT_NEAR(out[i], expected, bound)
        << ops.name << ", gate " << g << ", up " << up[i] << ", index " << i;
  }
}

TEST(SwigluTest, EveryRowIsWithinRoundingOfTheFormulaForAnyLength) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 4);
  for (const Ops* ops : AvailableRows()) {
    for (const size_t n : {1, 7, 8, 15, 16, 17, 31, 100, 1536}) {
      std::vector<float> gate(n);
      std::vector<float> up(n);
      for (float& g : gate) g = normal(random);
      for (float& u : up) u = normal(random);
      ExpectNearReference(*ops, gate, up);
    }
  }
}

TEST(SwigluTest, TheExponentialIsRightOverItsWholeRange) {
  std::vector<float> gate;
  for (float g = -120; g < 120; g += 0.00173f) gate.push_back(g);
  for (const float g : {-1e30f, -104.5f, -88.0f, -0.0f, 0.0f, 88.8f, 1e30f})
    gate.push_back(g);
  const std::vector<float> up(gate.size(), 1.0f);
  for (const Ops* ops : AvailableRows()) ExpectNearReference(*ops, gate, up);
}

TEST(SwigluTest, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Ops* ops : AvailableRows()) {
    for (const size_t at : {size_t{3}, size_t{18}}) {  // body and tail
      std::vector<float> gate(19, 1.0f);
      gate[at] = nan;
      std::vector<float> out(19);
      const std::vector<float> up(19, 1.0f);
      ops->swiglu(gate.data(), up.data(), 19, out.data());
      for (size_t i = 0; i < 19; ++i)
        EXPECT_EQ(std::isnan(out[i]), i == at) << ops->name << ", " << i;
    }
  }
}

TEST(SwigluTest, WorksInPlaceOnEitherInput) {
  for (const Ops* ops : AvailableRows()) {
    std::vector<float> gate(37);
    std::vector<float> up(37);
    for (size_t i = 0; i < 37; ++i) {
      gate[i] = static_cast<float>(i) - 18;
      up[i] = static_cast<float>(i) * 0.3f - 4;
    }
    std::vector<float> apart(37);
    ops->swiglu(gate.data(), up.data(), 37, apart.data());
    std::vector<float> on_gate = gate;
    ops->swiglu(on_gate.data(), up.data(), 37, on_gate.data());
    ops->swiglu(gate.data(), up.data(), 37, up.data());
    EXPECT_EQ(on_gate, apart) << ops->name;
    EXPECT_EQ(up, apart) << ops->name;
  }
}

}  // namespace
}  // namespace coldstream
