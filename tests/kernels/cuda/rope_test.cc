#include "kernels/cuda/rope.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/ops.h"
#include "kernels/rope_table.h"
#include "tests/kernels/cuda/random_floats.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

struct Shape {
  int64_t heads, head_dim, rot_dim;
};

void ExpectAsTheScalarRow(const Shape& shape, RopePairing pairing) {
  const std::vector<int64_t> positions = {0, 7, 8, 4000};
  const auto tokens = static_cast<int64_t>(positions.size());
  const RopeTable table({.rot_dim = shape.rot_dim, .base = 10000});
  std::vector<float> cos_sin(positions.size() *
                             static_cast<size_t>(shape.rot_dim));
  table.Fill(positions, cos_sin.data());
  const int64_t width = shape.heads * shape.head_dim;
  const auto before = RandomFloats(tokens * width, 1, 1);
  auto out = before;
  auto expected = before;
  const Ops& scalar = **OpsFor(Isa::kScalar);
  for (int64_t t = 0; t < tokens; ++t)
    scalar.rope(expected.data() + t * width, shape.heads, shape.head_dim,
                shape.rot_dim, cos_sin.data() + t * shape.rot_dim, pairing);
  simt::ImmediateStream stream;
  ASSERT_THAT(cuda::Rope(out.data(), cos_sin.data(), tokens, shape.heads,
                         shape.head_dim, shape.rot_dim, pairing, &stream),
              IsOk());
  for (size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<int64_t>(i) % shape.head_dim;
    if (at >= shape.rot_dim) {
      ASSERT_EQ(out[i], before[i]) << "not rotated";
      continue;
    }
    const int64_t half = shape.rot_dim / 2;
    const bool adjacent = pairing == RopePairing::kAdjacent;
    const int64_t mate = adjacent ? (at ^ 1) - at : (at < half ? half : -half);
    const double other =
        before[static_cast<size_t>(static_cast<int64_t>(i) + mate)];
    // A product, a fused sum, and the scalar row's rounding.
    ASSERT_NEAR(out[i], expected[i],
                3 * kRounding * (std::fabs(before[i]) + std::fabs(other)))
        << "index " << i << ", rot " << shape.rot_dim;
  }
}

TEST(CudaRopeTest, IsWithinRoundingOfTheScalarRow) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const Shape& shape :
         {Shape{1, 2, 2}, {3, 64, 64}, {8, 128, 128}, {5, 80, 32}, {2, 96, 96}})
      for (const RopePairing pairing :
           {RopePairing::kAdjacent, RopePairing::kHalves})
        ExpectAsTheScalarRow(shape, pairing);
  }
}

TEST(CudaRopeTest, MoreTokensThanAGridIsHighAreAllRotated) {
  constexpr int64_t kTokens = 65536 + 3;
  std::vector<float> x(kTokens * 2, 1.0f);
  std::vector<float> cos_sin(kTokens * 2);
  for (size_t t = 0; t < kTokens; ++t) cos_sin[2 * t + 1] = 1;  // a quarter
  simt::SetLaneOrder({});
  simt::ImmediateStream stream;
  ASSERT_THAT(cuda::Rope(x.data(), cos_sin.data(), kTokens, 1, 2, 2,
                         RopePairing::kAdjacent, &stream),
              IsOk());
  for (size_t t = 0; t < kTokens; ++t) {
    ASSERT_EQ(x[2 * t], -1) << t;
    ASSERT_EQ(x[2 * t + 1], 1) << t;
  }
}

}  // namespace
}  // namespace coldstream
