#include "kernels/cuda/add.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/ops.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"

namespace coldstream {
namespace {

std::vector<float> RandomFloats(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 10);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = normal(random);
  return x;
}

TEST(CudaAddTest, AddEqualsTheScalarRow) {
  const Ops& scalar = **OpsFor(Isa::kScalar);
  simt::ImmediateStream stream;
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const int64_t n : {0, 1, 31, 256, 257, 1000}) {
      const std::vector<float> x = RandomFloats(n, 1);
      std::vector<float> expected = RandomFloats(n, 2);
      std::vector<float> out = expected;
      scalar.add(x.data(), n, expected.data());
      ASSERT_TRUE(cuda::Add(x.data(), n, out.data(), &stream).ok());
      ASSERT_EQ(out, expected) << NameOf(order) << ", n " << n;
    }
  }
}

TEST(CudaAddTest, AddBiasAddsToEveryRow) {
  const Ops& scalar = **OpsFor(Isa::kScalar);
  simt::ImmediateStream stream;
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const int64_t rows : {0, 1, 3, 70000}) {
      if (rows > 1000 && order.kind != simt::LaneOrder::kForward) continue;
      const int64_t n = rows > 1000 ? 1 : 259;
      const std::vector<float> bias = RandomFloats(n, 3);
      std::vector<float> expected = RandomFloats(rows * n, 4);
      std::vector<float> x = expected;
      for (int64_t row = 0; row < rows; ++row)
        scalar.add(bias.data(), n, expected.data() + row * n);
      ASSERT_TRUE(cuda::AddBias(bias.data(), rows, n, x.data(), &stream).ok());
      ASSERT_EQ(x, expected) << NameOf(order) << ", rows " << rows;
    }
  }
}

}  // namespace
}  // namespace coldstream
