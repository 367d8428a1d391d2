#include "tools/spread.h"

#include "gtest/gtest.h"

namespace coldstream {
namespace {

TEST(SpreadTest, TheMedianOfAnOddNumberIsTheMiddleOne) {
  const Spread spread = SpreadOf({5, 1, 9});
  EXPECT_EQ(spread.median, 5);
  EXPECT_EQ(spread.least, 1);
  EXPECT_EQ(spread.most, 9);
}

TEST(SpreadTest, TheMedianOfAnEvenNumberLiesBetweenTheMiddleTwo) {
  EXPECT_EQ(SpreadOf({4, 1, 2, 100}).median, 3);
}

TEST(SpreadTest, TheDeviationIsTheSamples) {
  // Mean 5, squares 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32, over 7.
  const Spread spread = SpreadOf({2, 4, 4, 4, 5, 5, 7, 9});
  ASSERT_TRUE(spread.deviation);
  EXPECT_DOUBLE_EQ(*spread.deviation * *spread.deviation, 32.0 / 7);
}

TEST(SpreadTest, OneValueHasNoDeviation) {
  const Spread spread = SpreadOf({3});
  EXPECT_EQ(spread.median, 3);
  EXPECT_EQ(spread.most, 3);
  EXPECT_FALSE(spread.deviation);
}

}  // namespace
}  // namespace coldstream
