#include "tools/bench_report.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/bench_samples.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

BenchMeasurement Buffered() {
  BenchMeasurement measurement = SampleMeasurement();
  measurement.direct = false;
  return measurement;
}

TEST(BenchReportTest, TheTableHoldsRatesAgainstTheCeiling) {
  const std::string text = BenchText(SampleMeasurement());
  EXPECT_THAT(text, HasSubstr("1.50 (75 %)"));
  EXPECT_THAT(text, HasSubstr("6.00 (60 %)"));
  EXPECT_THAT(text, HasSubstr("0.00 %"));
  EXPECT_THAT(text, Not(HasSubstr("not disk speed")));
}

TEST(BenchReportTest, ABufferedRunIsNotSoldAsDiskSpeed) {
  const std::string text = BenchText(Buffered());
  EXPECT_THAT(text, HasSubstr("not disk speed: reads go through the page"));
  EXPECT_THAT(text, HasSubstr("NOT DISK"));
  EXPECT_THAT(text, Not(HasSubstr("disk GB/s")));
  EXPECT_THAT(text, Not(HasSubstr("75 %)")));
  const nlohmann::ordered_json json = BenchJson(Buffered());
  EXPECT_THAT(json["not_disk_speed"].get<std::string>(),
              HasSubstr("page cache"));
  EXPECT_TRUE(json["generation"]["disk_GBps"].is_null());
  EXPECT_TRUE(json["generation"]["disk_percent_of_ceiling"].is_null());
  EXPECT_DOUBLE_EQ(json["generation"]["read_GBps"].get<double>(), 1.5);
  EXPECT_THAT(BenchCsv(Buffered()), HasSubstr("page cache"));
}

TEST(BenchReportTest, ADiskThatOthersReadIsSaidToBeShared) {
  BenchMeasurement measurement = SampleMeasurement();
  *measurement.runs[0].generation.read.device += uint64_t{3} << 30;
  EXPECT_THAT(BenchText(measurement), HasSubstr("others read 3.00 GiB"));
  EXPECT_EQ(BenchJson(measurement)["bytes_read_by_others"], uint64_t{3} << 30);
  EXPECT_THAT(BenchText(SampleMeasurement()), Not(HasSubstr("others")));
}

TEST(BenchReportTest, AProbeInDoubtSaysWhy) {
  BenchMeasurement measurement = SampleMeasurement();
  measurement.disk_ceiling.before->doubt = "the file is too small";
  EXPECT_THAT(BenchText(measurement), HasSubstr("the file is too small"));
  const nlohmann::ordered_json json = BenchJson(measurement);
  EXPECT_TRUE(json["ceilings"]["disk_GBps"].is_null());
  EXPECT_EQ(json["ceilings"]["disk_before"]["doubt"], "the file is too small");
}

TEST(BenchReportTest, WhatWasNotMeasuredIsNull) {
  BenchMeasurement measurement = SampleMeasurement();
  measurement.plan.pass_read_bytes = 0;
  measurement.memory_ceiling.reset();
  measurement.runs.resize(1);
  for (BenchRun& run : measurement.runs) run.prompt = {};
  const nlohmann::ordered_json json = BenchJson(measurement);
  EXPECT_TRUE(json["prompt"].is_null());
  const nlohmann::ordered_json& phase = json["generation"];
  for (const char* key : {"read_GBps", "disk_GBps", "disk_GBps_over_wall_time",
                          "bytes_disagreement_percent", "disk_busy_percent",
                          "ram_percent_of_ceiling"}) {
    ASSERT_TRUE(phase.contains(key)) << key;
    EXPECT_TRUE(phase[key].is_null()) << key;
  }
  EXPECT_TRUE(phase["tokens_per_second"]["standard_deviation"].is_null());
  EXPECT_TRUE(json["page_cache"]["cached_percent_before"].is_null());
  EXPECT_THAT(BenchText(measurement), HasSubstr("all weights are resident"));
}

TEST(BenchReportTest, CsvHasAHeaderAndARowPerRunAsWide) {
  const std::vector<std::string> lines =
      absl::StrSplit(BenchCsv(SampleMeasurement()), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], HasSubstr("generation_tokens_per_second"));
  for (const std::string& line : lines)
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(lines[0].begin(), lines[0].end(), ','));
}

TEST(BenchReportTest, CsvQuotesWhatNeedsIt) {
  BenchMeasurement measurement = SampleMeasurement();
  measurement.model = "a \"big\", model";
  EXPECT_THAT(BenchCsv(measurement), HasSubstr("\"a \"\"big\"\", model\""));
}

}  // namespace
}  // namespace coldstream
