// RopeTable against the formulas of its sources. YaRN's literals come from an
// independent double-precision run of the published formula (the one of
// transformers' modeling_rope_utils), not from this code.

#include "kernels/rope_table.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace coldstream {
namespace {

struct Expected {
  int64_t position;
  int64_t pair;
  double cos;
  double sin;
};

std::vector<float> Row(const RopeTable& table, int64_t position) {
  std::vector<float> out(static_cast<size_t>(table.rot_dim()));
  table.Fill(std::vector<int64_t>{position}, out.data());
  return out;
}

void ExpectPairs(const RopeTable& table, const std::vector<Expected>& all) {
  for (const Expected& e : all) {
    const std::vector<float> row = Row(table, e.position);
    const size_t at = static_cast<size_t>(2 * e.pair);
    EXPECT_NEAR(row[at], e.cos, 1e-7) << e.position << ", " << e.pair;
    EXPECT_NEAR(row[at + 1], e.sin, 1e-7) << e.position << ", " << e.pair;
  }
}

TEST(RopeTableTest, PlainAnglesFollowTheDirectFormula) {
  const RopeTable table({.rot_dim = 96, .base = 500000});
  for (const int64_t position : {0, 1, 63, 64, 8191, 131071}) {
    const std::vector<float> row = Row(table, position);
    for (size_t i = 0; i < 48; ++i) {
      const double angle = static_cast<double>(position) /
                           std::pow(500000.0, static_cast<double>(i) / 48.0);
      // The power is rounded differently: 1e-15 relative, times 1.3e5 radians.
      EXPECT_NEAR(row[2 * i], std::cos(angle), 1e-7) << position << ", " << i;
      EXPECT_NEAR(row[2 * i + 1], std::sin(angle), 1e-7);
    }
  }
}

TEST(RopeTableTest, FillsPositionsInTheOrderGiven) {
  const RopeTable table({.rot_dim = 8});
  std::vector<float> out(3 * 8);
  table.Fill(std::vector<int64_t>{7, 0, 1000}, out.data());
  const std::vector<int64_t> positions = {7, 0, 1000};
  for (size_t p = 0; p < positions.size(); ++p)
    EXPECT_EQ(std::vector<float>(out.begin() + static_cast<long>(8 * p),
                                 out.begin() + static_cast<long>(8 * p + 8)),
              Row(table, positions[p]));
}

TEST(RopeTableTest, LinearScalingDividesThePosition) {
  const RopeTable plain({.rot_dim = 64});
  const RopeTable scaled(
      {.rot_dim = 64, .scaling = RopeScaling::kLinear, .factor = 4});
  EXPECT_EQ(Row(scaled, 4 * 77), Row(plain, 77));
}

TEST(RopeTableTest, YarnMatchesTheReferenceAtThe64WideHead) {
  const RopeTable table({.rot_dim = 64,
                         .base = 10000,
                         .scaling = RopeScaling::kYarn,
                         .factor = 4,
                         .original_context = 2048});
  ExpectPairs(table, {
                         {1, 0, 0.615204110, 0.958123633},  // kept
                         {1, 8, 1.132941032, 0.113673267},  // ramp begins
                         {1, 13, 1.138467353, 0.019211452},
                         {1, 20, 1.138628897, 0.001107896},
                         {1, 25, 1.138629416, 0.000213463},  // divided
                         {3001, 0, -0.810254794, -0.799977601},
                         {3001, 8, 0.088611346, -1.135176208},
                         {3001, 13, 1.061122323, 0.412912107},
                         {3001, 20, -1.110788041, 0.250253711},
                         {3001, 25, 0.963128869, 0.607338270},
                         {3001, 31, 1.132935637, 0.113727020},
                     });
}

TEST(RopeTableTest, YarnMatchesTheReferenceAtQwenSizes) {
  const RopeTable table({.rot_dim = 128,
                         .base = 1000000,
                         .scaling = RopeScaling::kYarn,
                         .factor = 4,
                         .original_context = 32768});
  ExpectPairs(table, {
                         {100000, 0, -1.137901633, 0.040704634},
                         {100000, 20, 0.096269103, 1.134552446},
                         {100000, 30, 1.058225563, -0.420280443},
                         {100000, 35, 0.995450656, -0.552770282},
                         {100000, 40, -0.300074787, -1.098377037},
                         {100000, 63, 1.138081541, 0.035318541},
                     });
}

TEST(RopeTableTest, AnExplicitAttentionFactorReplacesTheComputedOne) {
  RopeParams params{.rot_dim = 64,
                    .scaling = RopeScaling::kYarn,
                    .factor = 4,
                    .original_context = 2048};
  EXPECT_FLOAT_EQ(Row(RopeTable(params), 0)[0], 1.138629436f);
  params.attention_factor = 1;
  EXPECT_EQ(Row(RopeTable(params), 0)[0], 1.0f);
  params.attention_factor = 1.25;
  EXPECT_EQ(Row(RopeTable(params), 0)[0], 1.25f);
}

TEST(RopeTableTest, YarnWithoutExtrapolationIsLinearScaling) {
  const RopeTable yarn({.rot_dim = 64,
                        .scaling = RopeScaling::kYarn,
                        .factor = 8,
                        .original_context = 4096,
                        .extrapolation = 0});
  const RopeTable linear(
      {.rot_dim = 64, .scaling = RopeScaling::kLinear, .factor = 8});
  EXPECT_EQ(Row(yarn, 12345), Row(linear, 12345));
}

TEST(RopeTableTest, DivisorsDivideEachFrequency) {
  RopeParams params{.rot_dim = 8, .base = 10000};
  params.frequency_divisors = {1, 1, 4, 8};
  // Frequencies 1, 0.1, 0.01/4, 0.001/8.
  ExpectPairs(RopeTable(params), {
                                     {100, 0, std::cos(100.0), std::sin(100.0)},
                                     {100, 1, std::cos(10.0), std::sin(10.0)},
                                     {100, 2, std::cos(0.25), std::sin(0.25)},
                                     {100, 3, std::cos(0.0125), 0.012499674},
                                 });
}

}  // namespace
}  // namespace coldstream
