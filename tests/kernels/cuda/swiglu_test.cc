#include "kernels/cuda/swiglu.h"

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

void ExpectAsTheScalarRow(const std::vector<float>& gate,
                          const std::vector<float>& up) {
  const Ops& scalar = **OpsFor(Isa::kScalar);
  const auto n = static_cast<int64_t>(gate.size());
  std::vector<float> out(gate.size()), expected(gate.size());
  simt::ImmediateStream stream;
  ASSERT_THAT(cuda::SwiGlu(gate.data(), up.data(), n, out.data(), &stream),
              IsOk());
  scalar.swiglu(gate.data(), up.data(), n, expected.data());
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = gate[i];
    // expf (one unit in the last place, 2 roundings; CUDA C++ Programming
    // Guide, "Mathematical Functions"), twice for the sum; the sum, the
    // quotient and two products; the scalar row's. Where exp(-|g|) is
    // subnormal, one of its steps.
    const double bound = 9 * kRounding * std::fabs(double{expected[i]}) +
                         std::fabs(g * double{up[i]}) * 0x1p-125 + 1e-45;
    ASSERT_NEAR(out[i], expected[i], bound)
        << "gate " << g << ", up " << up[i] << ", index " << i;
  }
}

TEST(CudaSwigluTest, IsWithinRoundingOfTheScalarRowForAnyLength) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const int64_t n : {1, 31, 256, 257, 1536})
      ExpectAsTheScalarRow(RandomFloats(n, 4, 1), RandomFloats(n, 1, 2));
  }
}

TEST(CudaSwigluTest, TheExponentialIsRightOverItsWholeRange) {
  std::vector<float> gate;
  for (float g = -120; g < 120; g += 0.0173f) gate.push_back(g);
  for (const float g : {-1e30f, -104.5f, -88.0f, -0.0f, 0.0f, 88.8f, 1e30f})
    gate.push_back(g);
  ExpectAsTheScalarRow(gate, std::vector<float>(gate.size(), 1.0f));
}

TEST(CudaSwigluTest, NanStaysNan) {
  std::vector<float> gate(300, 1.0f);
  gate[3] = gate[299] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> up(300, 1.0f);
  std::vector<float> out(300);
  simt::ImmediateStream stream;
  ASSERT_THAT(cuda::SwiGlu(gate.data(), up.data(), 300, out.data(), &stream),
              IsOk());
  for (size_t i = 0; i < 300; ++i)
    EXPECT_EQ(std::isnan(out[i]), i == 3 || i == 299) << i;
}

TEST(CudaSwigluTest, WorksInPlaceOnEitherInput) {
  const auto gate = RandomFloats(300, 4, 3);
  const auto up = RandomFloats(300, 1, 4);
  std::vector<float> apart(300);
  auto on_gate = gate;
  auto on_up = up;
  simt::ImmediateStream stream;
  ASSERT_THAT(cuda::SwiGlu(gate.data(), up.data(), 300, apart.data(), &stream),
              IsOk());
  ASSERT_THAT(
      cuda::SwiGlu(on_gate.data(), up.data(), 300, on_gate.data(), &stream),
      IsOk());
  ASSERT_THAT(
      cuda::SwiGlu(gate.data(), on_up.data(), 300, on_up.data(), &stream),
      IsOk());
  EXPECT_EQ(on_gate, apart);
  EXPECT_EQ(on_up, apart);
}

}  // namespace
}  // namespace coldstream
