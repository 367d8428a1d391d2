#include "scheduler/pass_schedule.h"

#include <gtest/gtest.h>

namespace coldstream {
namespace {

TEST(PassScheduleTest, ResidentUnitsRideAlongWithTheColdOneBeforeThem) {
  const auto stages = MakeStages({true, false, true, false, false});
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].begin, 0);
  EXPECT_EQ(stages[0].end, 2);
  EXPECT_EQ(stages[0].loaded_unit(), 0);
  EXPECT_EQ(stages[1].begin, 2);
  EXPECT_EQ(stages[1].end, 5);
  EXPECT_EQ(stages[1].loaded_unit(), 2);
}

TEST(PassScheduleTest, ResidentUnitsAtTheBeginningLoadNothing) {
  const auto stages = MakeStages({false, false, true});
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].begin, 0);
  EXPECT_EQ(stages[0].end, 2);
  EXPECT_EQ(stages[0].loaded_unit(), -1);
  EXPECT_EQ(stages[1].loaded_unit(), 2);
}

TEST(PassScheduleTest, AllResidentIsOneStageThatReadsNothing) {
  const auto stages = MakeStages({false, false, false});
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_EQ(stages[0].begin, 0);
  EXPECT_EQ(stages[0].end, 3);
  EXPECT_FALSE(stages[0].load);
}

TEST(PassScheduleTest, AllColdIsOneStageAUnit) {
  const auto stages = MakeStages({true, true, true});
  ASSERT_EQ(stages.size(), 3u);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(stages[static_cast<size_t>(i)].loaded_unit(), i);
}

}  // namespace
}  // namespace coldstream
