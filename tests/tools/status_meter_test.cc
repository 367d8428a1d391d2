#include "tools/status_meter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int64_t kUnits = 10;  // of a pass

EngineStats After(int64_t units, uint64_t bytes = 0, double stall = 0) {
  EngineStats stats;
  stats.units = units;
  stats.passes = units / kUnits;
  stats.bytes_from_disk = bytes;
  stats.stall_seconds = stall;
  return stats;
}

TEST(StatusMeterTest, APromptIsCountedInUnits) {
  StatusMeter meter(kUnits, std::nullopt);
  meter.Begin({.prompt_tokens = 100, .pass_tokens = 40}, {}, 0);
  // Half a pass of three: 100 / 6 tokens in 2 s; five times that is left.
  EXPECT_EQ(meter.Line(After(5), 2, 80),
            "prompt 17 % of 100  8.33 tok/s  waits 0 %  ETA 0:10");
  EXPECT_THAT(meter.Line(After(20), 8, 80), StartsWith("prompt 67 % of 100  "));
  EXPECT_THAT(meter.Line(After(30), 12, 80),
              StartsWith("prompt 100 % of 100  "));
}

TEST(StatusMeterTest, GenerationHasASpeedAndAnEtaOfItsOwn) {
  StatusMeter meter(kUnits, std::nullopt);
  meter.Begin({.prompt_tokens = 8, .pass_tokens = 8, .generated_tokens = 5}, {},
              0);
  EXPECT_THAT(meter.Line(After(5), 10, 80), HasSubstr("first token in 0:10"));
  // The prompt's pass gave the first of five tokens.
  EXPECT_THAT(meter.Line(After(10), 20, 80),
              AllOf(StartsWith("generated 1/5"), Not(HasSubstr("tok/s"))));
  EXPECT_EQ(meter.Line(After(20), 22, 80),
            "generated 2/5  0.50 tok/s  waits 0 %  ETA 0:06");
}

TEST(StatusMeterTest, WithoutAPromptEveryPassIsAToken) {
  StatusMeter meter(kUnits, std::nullopt);
  meter.Begin({.label = "run 2/5", .generated_tokens = 4, .seconds_after = 100},
              After(1000), 50);
  EXPECT_EQ(meter.Line(After(1020), 54, 80),
            "run 2/5 generated 2/4  0.50 tok/s  waits 0 %  ETA 1:44");
}

TEST(StatusMeterTest, WhatIsNotKnownIsLeftOut) {
  StatusMeter meter(kUnits, std::nullopt);
  meter.Begin({.generated_tokens = -1}, {}, 0);
  EXPECT_EQ(meter.Line(After(0), 0, 80), "generated 0");
  EXPECT_EQ(meter.Line(After(20), 4, 80), "generated 2  0.50 tok/s  waits 0 %");
  meter.Begin({.generated_tokens = 9, .seconds_after = std::nullopt}, {}, 4);
  EXPECT_THAT(meter.Line(After(10), 5, 80), Not(HasSubstr("ETA")));
}

TEST(StatusMeterTest, ReadsAreOfTheLastSecondAgainstTheCeiling) {
  StatusMeter meter(kUnits, 2e9);
  meter.Begin({.generated_tokens = 9}, {}, 0);
  (void)meter.Line(After(0, 0), 0, 80);
  for (int tenth = 1; tenth <= 20; ++tenth) {
    // 3 GB in the first second, 1 in the second.
    const double at = tenth * 0.1;
    const double bytes = tenth <= 10 ? 3e9 * at : 3e9 + 1e9 * (at - 1);
    (void)meter.Line(After(0, static_cast<uint64_t>(bytes)), at, 80);
  }
  EXPECT_THAT(meter.Line(After(0, 4'100'000'000), 2.1, 80),
              HasSubstr("1.00 GB/s (50 %)"));
}

TEST(StatusMeterTest, ADiskAtRestHasNoRate) {
  StatusMeter meter(kUnits, 2e9);
  meter.Begin({.generated_tokens = 9}, After(0, 700), 0);
  (void)meter.Line(After(0, 700), 1, 80);
  EXPECT_THAT(meter.Line(After(10, 9000), 2, 80), Not(HasSubstr("GB/s")));
}

TEST(StatusMeterTest, WaitingIsAShareOfTheCallsTime) {
  StatusMeter meter(kUnits, std::nullopt);
  meter.Begin({.generated_tokens = 9}, After(0, 0, 5), 10);
  EXPECT_THAT(meter.Line(After(10, 0, 6), 14, 80), HasSubstr("waits 25 %"));
}

TEST(StatusMeterTest, ANarrowTerminalShowsTheFirstFigures) {
  StatusMeter meter(kUnits, std::nullopt);
  meter.Begin({.generated_tokens = 40}, {}, 0);
  EXPECT_EQ(meter.Line(After(20), 4, 30), "generated 2/40  0.50 tok/s");
  EXPECT_EQ(meter.Line(After(20), 4, 20), "generated 2/40");
  EXPECT_EQ(meter.Line(After(20), 4, 5), "gener");
  EXPECT_EQ(meter.Line(After(20), 4, 0), "");
}

TEST(StatusMeterTest, HoursHaveThreeParts) {
  StatusMeter meter(kUnits, std::nullopt);
  meter.Begin({.generated_tokens = 3, .seconds_after = 3600}, {}, 0);
  EXPECT_THAT(meter.Line(After(10), 60, 80), HasSubstr("ETA 1:02:00"));
}

}  // namespace
}  // namespace coldstream
