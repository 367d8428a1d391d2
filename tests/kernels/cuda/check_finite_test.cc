#include "kernels/cuda/check_finite.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/random_floats.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

int32_t TagOf(const std::vector<std::vector<float>>& tensors) {
  simt::ImmediateStream stream;
  int32_t lowest = -7;
  EXPECT_THAT(cuda::ResetTag(&lowest, &stream), IsOk());
  for (size_t tag = 0; tag < tensors.size(); ++tag)
    EXPECT_THAT(cuda::CheckFinite(tensors[tag].data(),
                                  static_cast<int64_t>(tensors[tag].size()),
                                  static_cast<int32_t>(tag), &lowest, &stream),
                IsOk());
  return lowest;
}

TEST(CudaCheckFiniteTest, FiniteValuesLeaveNoTag) {
  for (const int64_t n : {0, 1, 31, 257, 2048, 2049, 5000}) {
    auto x = RandomFloats(n, 1e37, 1);
    if (n > 0) x.back() = -std::numeric_limits<float>::max();
    EXPECT_EQ(TagOf({x, x}), cuda::kNoTag) << n;
  }
}

TEST(CudaCheckFiniteTest, OneBadValueAnywhereIsSeen) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const float bad : {kInfinity, -kInfinity, kNan}) {
      for (const size_t at : {0, 31, 32, 255, 256, 2047, 2048, 2100}) {
        std::vector<float> x(2101, 1.0f);
        x[at] = bad;
        ASSERT_EQ(TagOf({x}), 0) << bad << " at " << at;
      }
    }
  }
}

TEST(CudaCheckFiniteTest, TheLowestTagStays) {
  const std::vector<float> good(3000, 1.0f);
  const std::vector<float> bad(3000, kNan);
  EXPECT_EQ(TagOf({good, bad, good, bad}), 1);
  EXPECT_EQ(TagOf({good, good, bad, bad}), 2);
}

TEST(CudaCheckFiniteTest, APassBeginsWithoutTheTagOfTheLast) {
  EXPECT_EQ(TagOf({{kNan}}), 0);
  EXPECT_EQ(TagOf({{1.0f}}), cuda::kNoTag);
}

}  // namespace
}  // namespace coldstream
