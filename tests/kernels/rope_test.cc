#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/rope_table.h"
#include "tests/kernels/available_rows.h"

namespace coldstream {
namespace {

struct Shape {
  int64_t heads;
  int64_t head_dim;
  int64_t rot_dim;
};

std::vector<float> RandomHeads(const Shape& shape) {
  std::mt19937 random(static_cast<unsigned>(shape.head_dim));
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(shape.heads * shape.head_dim));
  for (float& v : x) v = normal(random);
  return x;
}

void ExpectRotated(const Ops& ops, const Shape& shape, RopePairing pairing,
                   int64_t position) {
  const RopeTable table({.rot_dim = shape.rot_dim, .base = 10000});
  std::vector<float> cos_sin(static_cast<size_t>(shape.rot_dim));
  table.Fill(std::vector<int64_t>{position}, cos_sin.data());
  const std::vector<float> before = RandomHeads(shape);
  std::vector<float> after = before;
  ops.rope(after.data(), shape.heads, shape.head_dim, shape.rot_dim,
           cos_sin.data(), pairing);
  for (int64_t h = 0; h < shape.heads; ++h) {
    for (int64_t i = 0; i < shape.head_dim; ++i) {
      const size_t at = static_cast<size_t>(h * shape.head_dim + i);
      if (i >= shape.rot_dim) {
        ASSERT_EQ(after[at], before[at]) << ops.name << ": not rotated";
        continue;
      }
      const bool adjacent = pairing == RopePairing::kAdjacent;
      const int64_t half = shape.rot_dim / 2;
      const int64_t pair = adjacent ? i / 2 : i % half;
      const bool second = adjacent ? i % 2 == 1 : i >= half;
      const int64_t step = adjacent ? 1 : half;
      const double other = before[at - static_cast<size_t>(second ? step : 0) +
                                  static_cast<size_t>(second ? 0 : step)];
      const double angle =
          static_cast<double>(position) *
          std::pow(10000.0, -2.0 * static_cast<double>(pair) /
                                static_cast<double>(shape.rot_dim));
      const double x = before[at];
      const double turned =
          second ? other * std::sin(angle) : -other * std::sin(angle);
      // The table's rounding, a product and a fused sum.
      const double bound =
          4 * kFloatRounding * (std::fabs(x) + std::fabs(other));
      ASSERT_NEAR(after[at], x * std::cos(angle) + turned, bound)
          << ops.name << ", head " << h << ", index " << i << ", rot "
          << shape.rot_dim;
    }
  }
}

TEST(RopeTest, EveryRowRotatesByTheDirectFormula) {
  const std::vector<Shape> shapes = {
      {1, 2, 2},     {3, 64, 64},   {2, 80, 80}, {2, 96, 72}, {4, 100, 100},
      {2, 128, 128}, {1, 256, 256}, {2, 64, 16}, {3, 40, 34}};
  for (const Ops* ops : AvailableRows())
    for (const Shape& shape : shapes)
      for (const RopePairing pairing :
           {RopePairing::kAdjacent, RopePairing::kHalves})
        for (const int64_t position : {0, 1, 77, 4095})
          ExpectRotated(*ops, shape, pairing, position);
}

}  // namespace
}  // namespace coldstream
