#include "kernels/cuda/arg_max.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/logit_key.cuh"
#include "tests/kernels/cuda/random_floats.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Found {
  std::vector<cuda::LogitKey> best;
  std::vector<int32_t> first_bad;
};

Found ArgMax(const std::vector<float>& logits, int64_t stride, int64_t n) {
  const auto rows = logits.size() / static_cast<size_t>(stride);
  Found found{std::vector<cuda::LogitKey>(rows, 77),
              std::vector<int32_t>(rows, 77)};
  simt::ImmediateStream stream;
  EXPECT_THAT(cuda::ArgMax(logits.data(), stride, static_cast<int64_t>(rows), n,
                           found.best.data(), found.first_bad.data(), &stream),
              IsOk());
  return found;
}

TEST(CudaArgMaxTest, FindsTheLargestOfEachRow) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const int64_t n : {1, 31, 256, 2047, 2048, 2049, 9000}) {
      const int64_t stride = n + 3;
      auto logits = RandomFloats(3 * stride, 5, static_cast<unsigned>(n));
      // Past the row's end: never chosen.
      for (int64_t row = 0; row < 3; ++row)
        logits[static_cast<size_t>(row * stride + n)] = 1000;
      const Found found = ArgMax(logits, stride, n);
      for (int64_t row = 0; row < 3; ++row) {
        const auto begin = logits.begin() + row * stride;
        const auto best = std::max_element(begin, begin + n);
        const auto choice =
            cuda::ChoiceOf(found.best[static_cast<size_t>(row)]);
        ASSERT_EQ(choice.id, best - begin) << NameOf(order) << ", n " << n;
        ASSERT_EQ(choice.logit, *best);
        ASSERT_EQ(found.first_bad[static_cast<size_t>(row)], cuda::kNoBadLogit);
      }
    }
  }
}

TEST(CudaArgMaxTest, TheBestMayBeAnywhere) {
  simt::SetLaneOrder({});
  for (const size_t at : {0, 31, 32, 255, 256, 2047, 2048, 4095, 4999}) {
    std::vector<float> logits(5000, -1.0f);
    logits[at] = 0.5f;
    EXPECT_EQ(cuda::ChoiceOf(ArgMax(logits, 5000, 5000).best[0]).id,
              static_cast<int32_t>(at));
  }
}

TEST(CudaArgMaxTest, TheLowestIdWinsTies) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    std::vector<float> logits(5000, -3.5f);
    for (const size_t at : {77, 400, 4999}) logits[at] = -2;
    EXPECT_EQ(cuda::ChoiceOf(ArgMax(logits, 5000, 5000).best[0]).id, 77);
  }
}

TEST(CudaArgMaxTest, MinusZeroEqualsZero) {
  std::vector<float> logits(100, -1.0f);
  logits[40] = -0.0f;
  logits[60] = 0.0f;
  EXPECT_EQ(cuda::ChoiceOf(ArgMax(logits, 100, 100).best[0]).id, 40);
}

TEST(CudaArgMaxTest, TokensRuledOutAreNotChosen) {
  std::vector<float> logits(3000, -kInfinity);
  EXPECT_EQ(ArgMax(logits, 3000, 3000).best[0], cuda::kNoChoice);
  logits[2999] = -std::numeric_limits<float>::max();
  const Found found = ArgMax(logits, 3000, 3000);
  EXPECT_EQ(cuda::ChoiceOf(found.best[0]).id, 2999);
  EXPECT_EQ(found.first_bad[0], cuda::kNoBadLogit);
}

TEST(CudaArgMaxTest, TheFirstNanOrPlusInfinityIsTold) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    std::vector<float> logits(6000, 1.0f);
    logits[2500] = kInfinity;
    logits[2400] = -kInfinity;
    logits[2499] = kNan;
    logits[5000] = -kNan;
    const Found found = ArgMax(logits, 3000, 3000);
    EXPECT_EQ(found.first_bad[0], 2499);
    EXPECT_EQ(found.first_bad[1], 2000);
  }
}

}  // namespace
}  // namespace coldstream
