#include "kernels/best_logits.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace coldstream {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<LogitChoice> Best(const std::vector<float>& logits, int64_t k) {
  std::vector<LogitChoice> best(static_cast<size_t>(k), {77, 77});
  BestLogits(logits.data(), static_cast<int64_t>(logits.size()), k,
             best.data());
  return best;
}

std::vector<int32_t> Ids(const std::vector<LogitChoice>& choices) {
  std::vector<int32_t> ids;
  for (const LogitChoice& choice : choices) ids.push_back(choice.id);
  return ids;
}

TEST(BestLogitsTest, AreTheFirstOfAStableSort) {
  std::mt19937 random(1);
  for (const int64_t n : {1, 2, 40, 300}) {
    // Many ties.
    std::vector<float> logits(static_cast<size_t>(n));
    for (float& logit : logits) logit = static_cast<float>(random() % 20) - 9;
    std::vector<int32_t> sorted(logits.size());
    for (size_t i = 0; i < sorted.size(); ++i)
      sorted[i] = static_cast<int32_t>(i);
    std::stable_sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) {
      return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
    });
    for (int64_t k = 1; k <= n; k += 1 + k / 2) {
      const std::vector<LogitChoice> best = Best(logits, k);
      EXPECT_EQ(Ids(best),
                std::vector<int32_t>(sorted.begin(), sorted.begin() + k));
      for (const LogitChoice& choice : best)
        EXPECT_EQ(choice.logit, logits[static_cast<size_t>(choice.id)]);
    }
  }
}

TEST(BestLogitsTest, ZerosOfBothSignsAreEqual) {
  EXPECT_EQ(Ids(Best({-1, -0.0f, 0.0f}, 2)), (std::vector<int32_t>{1, 2}));
}

TEST(BestLogitsTest, WhatIsNotFiniteIsLeftOutAndPlacesStayEmpty) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto best = Best({nan, -kInfinity, -3, kInfinity, -2}, 4);
  EXPECT_EQ(Ids(best), (std::vector<int32_t>{4, 2, -1, -1}));
  EXPECT_EQ(best[3].logit, -kInfinity);
}

}  // namespace
}  // namespace coldstream
