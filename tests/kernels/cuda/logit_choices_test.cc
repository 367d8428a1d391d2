#include "kernels/cuda/logit_choices.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/arg_max.h"
#include "kernels/cuda/logit_key.cuh"
#include "tests/kernels/cuda/random_floats.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

std::vector<LogitChoice> Choices(const std::vector<cuda::LogitKey>& keys) {
  std::vector<LogitChoice> choices(keys.size());
  simt::ImmediateStream stream;
  EXPECT_THAT(cuda::LogitChoices(keys.data(), static_cast<int64_t>(keys.size()),
                                 choices.data(), &stream),
              IsOk());
  return choices;
}

// Rows of one logit each, whose keys arg-max makes.
TEST(CudaLogitChoicesTest, AreTheLogitsThatTheKeysWereMadeOf) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const int64_t n : {1, 31, 256, 257, 1000}) {
      std::vector<float> logits = RandomFloats(n, 10, static_cast<unsigned>(n));
      logits.front() = -std::numeric_limits<float>::max();
      logits.back() = std::numeric_limits<float>::max();
      std::vector<cuda::LogitKey> keys(logits.size());
      std::vector<int32_t> bad(logits.size());
      simt::ImmediateStream stream;
      ASSERT_THAT(cuda::ArgMax(logits.data(), 1, n, 1, keys.data(), bad.data(),
                               &stream),
                  IsOk());
      const std::vector<LogitChoice> choices = Choices(keys);
      for (size_t i = 0; i < logits.size(); ++i) {
        ASSERT_EQ(choices[i].logit, logits[i]) << i;
        ASSERT_EQ(choices[i].id, 0) << i;
        ASSERT_EQ(cuda::ChoiceOf(keys[i]).logit, logits[i]) << i;
      }
    }
  }
}

TEST(CudaLogitChoicesTest, NoChoiceIsMinusInfinityOfNoToken) {
  const std::vector<LogitChoice> choices = Choices({cuda::kNoChoice});
  EXPECT_EQ(choices[0].logit, LogitChoice{}.logit);
  EXPECT_EQ(choices[0].id, LogitChoice{}.id);
}

}  // namespace
}  // namespace coldstream
