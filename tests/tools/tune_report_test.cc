#include "tools/tune_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TuneEntry Entry(int prefetch_depth, size_t mode, double rate) {
  TuneEntry entry;
  entry.point = {prefetch_depth, 16, 1 << 20, mode};
  entry.passes = 4;
  entry.seconds = 4 / rate;
  entry.bytes = 4'000'000'000;
  entry.memory_bytes = 64 << 20;
  return entry;
}

TuneMeasurement Sample() {
  TuneMeasurement tune;
  tune.model = "model.gguf";
  tune.key = {"the disk", "the model", 1 << 30, 2};
  tune.disk.file_system = "ext4";
  tune.weight_bytes = 2ull << 30;
  tune.pass_read_bytes = 1 << 30;
  tune.space = {{1, 2, 4},
                {16},
                {1 << 20},
                {{}, {IoBackendKind::kAuto, DirectMode::kOff, true}}};
  tune.result.curve = {Entry(2, 0, 1.0), Entry(1, 0, 0.5), Entry(4, 0, 0),
                       Entry(2, 1, 2.0)};
  tune.result.curve[2] = {};
  tune.result.curve[2].point = {4, 16, 1 << 20, 0};
  tune.result.curve[2].status = absl::ResourceExhaustedError("does not fit");
  tune.result.chosen = 0;
  DiskProbe probe;
  probe.bytes_per_second = 2e9;
  probe.backend = "uring";
  probe.direct = true;
  DiskPoint point{.chunk_bytes = 1 << 20, .depth = 16};
  point.registered = true;
  point.bytes_per_second = 2e9;
  probe.points.push_back(point);
  point.registered = false;
  point.buffers = ProbeBuffers::kSmallPages;
  point.bytes_per_second = 1e9;
  probe.points.push_back(point);
  tune.probe = probe;
  return tune;
}

// The text's line with this in it.
std::string Line(const std::string& text, const std::string& with) {
  const size_t at = text.find(with);
  if (at == std::string::npos) return "";
  const size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

TEST(TuneReportTest, ARowPerPointHasABarScaledToTheBest) {
  const std::string text = TuneText(Sample(), {.dry_run = true});
  const std::string full(30, '#');
  EXPECT_THAT(Line(text, "not a choice"),
              AllOf(HasSubstr(full), HasSubstr("page cache")));
  EXPECT_THAT(Line(text, "<- chosen"),
              AllOf(HasSubstr(std::string(15, '#')),
                    Not(HasSubstr(std::string(16, '#'))), HasSubstr("1.000")));
  EXPECT_THAT(Line(text, "0.500"), HasSubstr(" ########"));
  EXPECT_THAT(Line(text, "cannot be had"), HasSubstr(" 4 "));
}

TEST(TuneReportTest, TheBuffersOfTheDiskAreCompared) {
  const std::string text = TuneText(Sample(), {.dry_run = true});
  EXPECT_THAT(Line(text, "registered"), HasSubstr(std::string(30, '#')));
  EXPECT_THAT(Line(text, "4 KiB pages"),
              AllOf(HasSubstr("1.00"), HasSubstr(std::string(15, '#')),
                    Not(HasSubstr(std::string(16, '#')))));
}

TEST(TuneReportTest, TheChoiceIsGivenAsFlagsAndWhereItWent) {
  EXPECT_THAT(TuneText(Sample(), {.dry_run = true}),
              AllOf(HasSubstr("--prefetch-depth 2 --io-depth 16 --io-chunk 1M "
                              "--io auto"),
                    HasSubstr("--dry-run")));
  EXPECT_THAT(TuneText(Sample(), {.written = true, .path = "/p/profile.json"}),
              AllOf(HasSubstr("Written to /p/profile.json"),
                    HasSubstr("1.00 GiB"), HasSubstr("2 threads")));
  EXPECT_THAT(TuneText(Sample(), {}), HasSubstr("Not written"));
}

TEST(TuneReportTest, WhatDoesNotStreamIsSaidInAWord) {
  TuneMeasurement tune = Sample();
  tune.pass_read_bytes = 0;
  tune.result = {};
  tune.probe.reset();
  EXPECT_THAT(TuneText(tune, {}),
              AllOf(HasSubstr("nothing streams"), Not(HasSubstr("Chosen"))));
  const auto json = TuneJson(tune, {});
  EXPECT_TRUE(json["chosen"].is_null());
  EXPECT_TRUE(json["probe"].is_null());
  EXPECT_TRUE(json["curve"].empty());
}

TEST(TuneReportTest, JsonHasTheCurveTheChoiceAndTheProfile) {
  const auto json =
      TuneJson(Sample(), {.written = true, .path = "/p/profile.json"});
  ASSERT_EQ(json["curve"].size(), 4u);
  EXPECT_EQ(json["chosen"]["prefetch_depth"], 2);
  EXPECT_EQ(json["curve"][2]["error"], "does not fit");
  EXPECT_EQ(json["curve"][3]["shown_only"], true);
  EXPECT_EQ(json["profile"], "/p/profile.json");
  EXPECT_EQ(json["written"], true);
  EXPECT_EQ(json["probe"]["points"].size(), 2u);
  EXPECT_NEAR(json["chosen"]["tokens_per_second"].get<double>(), 1.0, 1e-9);
}

}  // namespace
}  // namespace coldstream
