#include "base/check.h"

#include <gtest/gtest.h>

namespace coldstream {
namespace {

TEST(Check, PassesAndEvaluatesItsConditionOnce) {
  int evaluations = 0;
  CHECK(++evaluations == 1);
  EXPECT_EQ(evaluations, 1);
}

TEST(CheckDeathTest, AFailurePrintsTheConditionAndItsPlace) {
  const int two = 2;
  EXPECT_DEATH(CHECK(two == 3), "check_test.cc:[0-9]+: CHECK failed: two == 3");
}

TEST(CheckDeathTest, DcheckIsCheckedInDebugBuildsOnly) {
  int evaluations = 0;
#ifdef NDEBUG
  DCHECK(++evaluations == 0);
  EXPECT_EQ(evaluations, 0);
#else
  DCHECK(++evaluations == 1);
  EXPECT_EQ(evaluations, 1);
  EXPECT_DEATH(DCHECK(evaluations == 7), "CHECK failed: evaluations == 7");
#endif
}

TEST(Check, StandsWhereAnExpressionStands) {
  const int value = 4;
  if (value == 4)
    CHECK(value > 3);
  else
    CHECK(value < 3);
}

}  // namespace
}  // namespace coldstream
