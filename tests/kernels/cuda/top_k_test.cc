#include "kernels/cuda/top_k.h"

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

struct Found {
  std::vector<cuda::LogitKey> best;  // [rows, k]
  std::vector<int32_t> first_bad;
};

Found TopK(const std::vector<float>& logits, int64_t stride, int64_t n,
           int64_t k) {
  const auto rows =
      static_cast<int64_t>(logits.size() / static_cast<size_t>(stride));
  Found found{std::vector<cuda::LogitKey>(static_cast<size_t>(rows * k), 77),
              std::vector<int32_t>(static_cast<size_t>(rows), 77)};
  std::vector<cuda::LogitKey> scratch(
      static_cast<size_t>(cuda::TopKScratch(rows, n, k)));
  simt::ImmediateStream stream;
  EXPECT_THAT(cuda::TopK(logits.data(), stride, rows, n, k, scratch.data(),
                         found.best.data(), found.first_bad.data(), &stream),
              IsOk());
  return found;
}

// Ids in the sampler's order: by value, then the lower id.
std::vector<int32_t> Sorted(const float* logits, int64_t n) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  return ids;
}

void ExpectSortedBest(int64_t rows, int64_t n, int64_t k, unsigned seed) {
  const int64_t stride = n + 5;
  auto logits = RandomFloats(rows * stride, 2, seed);
  // Many ties, across chunks too.
  for (float& x : logits) x = static_cast<float>(static_cast<int>(x * 8)) / 8;
  const Found found = TopK(logits, stride, n, k);
  for (int64_t row = 0; row < rows; ++row) {
    const float* const from = logits.data() + row * stride;
    const std::vector<int32_t> ids = Sorted(from, n);
    for (int64_t i = 0; i < k; ++i) {
      const cuda::LogitKey key = found.best[static_cast<size_t>(row * k + i)];
      if (i >= n) {
        ASSERT_EQ(key, cuda::kNoChoice) << i;
        continue;
      }
      ASSERT_EQ(cuda::ChoiceOf(key).id, ids[static_cast<size_t>(i)])
          << "n " << n << ", k " << k << ", row " << row << ", place " << i;
      ASSERT_EQ(cuda::ChoiceOf(key).logit, from[ids[static_cast<size_t>(i)]]);
    }
  }
}

TEST(CudaTopKTest, KeepsTheBestInOrderForAnyLength) {
  simt::SetLaneOrder({});
  for (const int64_t n : {1, 2, 40, 1000, 4095, 4096, 4097, 12000})
    for (const int64_t k : {1, 40, 1024})
      ExpectSortedBest(n < 5000 ? 2 : 1, n, k, static_cast<unsigned>(n + k));
}

TEST(CudaTopKTest, AVocabularyOfSeveralRoundsIsExact) {
  simt::SetLaneOrder({});
  // 128256 logits: 32 chunks, then 8 of what they kept, then 2, then 1.
  ExpectSortedBest(1, 128256, 1024, 3);
  ExpectSortedBest(1, 128256, 40, 4);
}

TEST(CudaTopKTest, DoesNotDependOnTheOrderOfThreads) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    ExpectSortedBest(1, 9000, 100, 5);
  }
}

TEST(CudaTopKTest, TokensRuledOutAreLeftOut) {
  simt::SetLaneOrder({});
  std::vector<float> logits(5000, -kInfinity);
  logits[4999] = -2;
  logits[10] = -3;
  const Found found = TopK(logits, 5000, 5000, 3);
  EXPECT_EQ(cuda::ChoiceOf(found.best[0]).id, 4999);
  EXPECT_EQ(cuda::ChoiceOf(found.best[1]).id, 10);
  EXPECT_EQ(found.best[2], cuda::kNoChoice);
  EXPECT_EQ(found.first_bad[0], cuda::kNoBadLogit);
}

TEST(CudaTopKTest, TheFirstNanOrPlusInfinityIsToldAndNotChosen) {
  simt::SetLaneOrder({});
  std::vector<float> logits(5000, 1.0f);
  logits[4800] = std::numeric_limits<float>::quiet_NaN();
  logits[4500] = kInfinity;
  const Found found = TopK(logits, 5000, 5000, 2);
  EXPECT_EQ(found.first_bad[0], 4500);
  EXPECT_EQ(cuda::ChoiceOf(found.best[0]).id, 0);
}

}  // namespace
}  // namespace coldstream
