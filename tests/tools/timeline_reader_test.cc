#include "tools/timeline_reader.h"

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/chrome_trace.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StatusOr<Timeline> Read(const std::string& text) {
  const TempDir dir;
  return ReadTimeline(dir.Write("t.json", text));
}

std::vector<std::string> RowNames(const Timeline& timeline) {
  std::vector<std::string> names;
  names.reserve(timeline.rows.size());
  for (const TimelineRow& row : timeline.rows) names.push_back(row.name);
  return names;
}

TEST(TimelineReaderTest, ReadsWhatChromeTraceWrites) {
  const TempDir dir;
  const std::string path = dir.Path("t.json");
  {
    auto trace = ChromeTrace::Create(path);
    ASSERT_THAT(trace, IsOk());
    (*trace)->Span({.lane = TraceLane::kStall,
                    .name = "waits for disk: blk.0",
                    .begin_ns = 1'000'000'000'000'001,
                    .end_ns = 1'000'000'000'002'004,
                    .pass = 7});
    for (const int64_t begin : {1'000'000'000'000'000, 1'000'000'000'000'100})
      (*trace)->Span({.lane = TraceLane::kDisk,
                      .name = "blk.0",
                      .begin_ns = begin,
                      .end_ns = begin + 2000,
                      .pass = 7,
                      .bytes = 4096});
    (*trace)->Count(TraceCounter::kFreeSlots, 1'000'000'000'003'000, 2);
    ASSERT_THAT((*trace)->Finish(), IsOk());
  }
  const auto timeline = ReadTimeline(path);
  ASSERT_THAT(timeline, IsOk());
  EXPECT_THAT(RowNames(*timeline), ElementsAre("disk", "disk 2", "stall"));
  EXPECT_EQ(timeline->rows[1].lane, "disk");
  const TimelineSpan& read = timeline->rows[1].spans[0];
  EXPECT_EQ(read.begin_ns, 100);
  EXPECT_EQ(read.end_ns, 2100);
  EXPECT_EQ(read.pass, 7);
  EXPECT_EQ(read.bytes, 4096u);
  const TimelineSpan& stall = timeline->rows[2].spans[0];
  EXPECT_EQ(timeline->names[stall.name], "waits for disk: blk.0");
  EXPECT_EQ(stall.end_ns - stall.begin_ns, 2003);
  ASSERT_EQ(timeline->counters.size(), 1u);
  EXPECT_EQ(timeline->counters[0].name, "free slots");
  EXPECT_EQ(timeline->counters[0].points[0].at_ns, 3000);
  EXPECT_EQ(timeline->counters[0].points[0].value, 2);
  EXPECT_EQ(timeline->wall_ns, 3000);
  EXPECT_EQ(timeline->ignored, 0u);
}

TEST(TimelineReaderTest, SortsSpansAndCountsWhatIsNotDrawn) {
  const auto timeline = Read(R"({"other": [[1], {"traceEvents": 2}],
    "traceEvents": [
      {"ph": "X", "pid": "a", "tid": "b", "ts": 5, "dur": 1, "name": "late"},
      {"ph": "X", "pid": "a", "tid": "b", "ts": -2.5, "dur": 1, "name": "x",
       "args": {"bytes": -4, "pass": "none", "inner": {"deep": []}}},
      {"ph": "B", "ts": 1}, {"ph": "E", "ts": 2}]})");
  ASSERT_THAT(timeline, IsOk());
  ASSERT_THAT(RowNames(*timeline), ElementsAre("thread b"));
  const std::vector<TimelineSpan>& spans = timeline->rows[0].spans;
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].begin_ns, 0);
  EXPECT_EQ(spans[0].bytes, 0u);
  EXPECT_EQ(spans[0].pass, -1);
  EXPECT_EQ(spans[1].begin_ns, 7500);
  EXPECT_EQ(timeline->ignored, 2u);
}

TEST(TimelineReaderTest, EachNumberOfACounterIsASeries) {
  const auto timeline = Read(R"({"traceEvents": [
      {"ph": "C", "name": "memory", "ts": 2, "args": {"value": 3}},
      {"ph": "C", "name": "memory", "ts": 1, "args": {"cached": 4, "x": "y"}},
      {"ph": "C", "name": "memory", "ts": 0, "args": {"value": 1.5}}]})");
  ASSERT_THAT(timeline, IsOk());
  ASSERT_EQ(timeline->counters.size(), 2u);
  EXPECT_EQ(timeline->counters[0].name, "memory");
  EXPECT_EQ(timeline->counters[0].points[0].value, 1.5);
  EXPECT_EQ(timeline->counters[0].points[1].at_ns, 2000);
  EXPECT_EQ(timeline->counters[1].name, "memory: cached");
}

TEST(TimelineReaderTest, ATraceOfNothingIsATimelineOfNothing) {
  const auto timeline = Read(R"({"traceEvents": []})");
  ASSERT_THAT(timeline, IsOk());
  EXPECT_THAT(timeline->rows, IsEmpty());
  EXPECT_EQ(timeline->wall_ns, 0);
}

TEST(TimelineReaderTest, OnlyANumberAfterASpaceMakesARowOfALane) {
  const auto lane_of = [](const std::string& name) {
    const auto timeline = Read(
        R"({"traceEvents": [{"ph": "M", "tid": 1, "name": "thread_name",
                             "args": {"name": ")" +
        name + R"("}}, {"ph": "X", "tid": 1, "ts": 0, "dur": 1}]})");
    return timeline.ok() ? timeline->rows[0].lane : "?";
  };
  EXPECT_EQ(lane_of("disk 12"), "disk");
  EXPECT_EQ(lane_of("output head"), "output head");
  EXPECT_EQ(lane_of("disk2"), "disk2");
  EXPECT_EQ(lane_of("disk "), "disk ");
  EXPECT_EQ(lane_of(" 2"), " 2");
  EXPECT_EQ(lane_of(""), "");
}

TEST(TimelineReaderTest, SaysWhatIsWrongWithAFile) {
  using Code = absl::StatusCode;
  const std::vector<std::tuple<std::string, Code, std::string>> kCases = {
      {"", Code::kDataLoss, "not JSON: wrong at byte"},
      {"GGUF", Code::kDataLoss, "not JSON: wrong at byte 1"},
      {R"({"traceEvents": [{"ph": "X",)", Code::kDataLoss, "not JSON"},
      {R"({"traceEvents": [1e999]})", Code::kDataLoss, "not JSON"},
      {R"({"a": 1})", Code::kInvalidArgument, "no \"traceEvents\""},
      {R"({"traceEvents": {}})", Code::kInvalidArgument, "no \"traceEvents\""},
      {R"([{"traceEvents": []}])", Code::kInvalidArgument, "no \"traceEv"},
      {R"({"traceEvents": [{"ph": "M"}, 7]})", Code::kDataLoss,
       "traceEvents[1]: expected an object"},
      {R"({"traceEvents": [[]]})", Code::kDataLoss, "expected an object"},
      {R"({"traceEvents": [{"ph": "X", "ts": 1}]})", Code::kDataLoss,
       "traceEvents[0]: no number \"dur\""},
      {R"({"traceEvents": [{"ph": "C", "ts": "1"}]})", Code::kDataLoss,
       "no number \"ts\""},
      {R"({"traceEvents": [{"ph": "X", "ts": 1e300, "dur": 1}]})",
       Code::kDataLoss, "\"ts\" is out of range"},
      {R"({"traceEvents": [{"ph": "X", "ts": 1, "dur": -1}]})", Code::kDataLoss,
       "\"dur\" is below zero"},
  };
  for (const auto& [text, code, message] : kCases) {
    EXPECT_THAT(Read(text), StatusIs(code, AllOf(HasSubstr("t.json: "),
                                                 HasSubstr(message))))
        << text;
  }
}

TEST(TimelineReaderTest, RefusesAHugeFileUnread) {
  const TempDir dir;
  const std::string path = dir.Write("t.json", "");
  std::filesystem::resize_file(path, kMaxTraceBytes + 1);  // a hole
  EXPECT_THAT(ReadTimeline(path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("536870913 bytes, expected at most")));
}

TEST(TimelineReaderTest, ManyLevelsAreNoDanger) {
  const std::string deep(200'000, '[');
  EXPECT_THAT(Read(R"({"traceEvents": [{"args": )" + deep),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("not JSON")));
}

}  // namespace
}  // namespace coldstream
