#include "kernels/cuda/scale.h"

#include <vector>

#include "gtest/gtest.h"
#include "kernels/ops.h"
#include "tests/kernels/cuda/random_floats.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

TEST(CudaScaleTest, EqualsTheScalarRow) {
  const Ops& scalar = **OpsFor(Isa::kScalar);
  simt::ImmediateStream stream;
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const int64_t n : {0, 1, 255, 256, 257, 1000}) {
      std::vector<float> expected = RandomFloats(n, 10, 1);
      std::vector<float> x = expected;
      scalar.scale(0.0625f * 1.1f, n, expected.data());
      ASSERT_THAT(cuda::Scale(0.0625f * 1.1f, n, x.data(), &stream), IsOk());
      ASSERT_EQ(x, expected) << NameOf(order) << ", n " << n;
    }
  }
}

}  // namespace
}  // namespace coldstream
