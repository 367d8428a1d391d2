#include "tools/timeline_summary.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coldstream {
namespace {

using ::testing::IsEmpty;

// Adds spans by name, in rows by name.
class Recording {
 public:
  void Add(const std::string& row, const std::string& lane,
           const std::string& name, TimelineSpan span) {
    span.name = static_cast<uint32_t>(timeline.names.size());
    timeline.names.push_back(name);
    timeline.wall_ns = std::max(timeline.wall_ns, span.end_ns);
    for (TimelineRow& known : timeline.rows)
      if (known.name == row) return known.spans.push_back(span);
    timeline.rows.push_back({row, lane, {span}});
  }

  Timeline timeline;
};

TEST(TimelineSummaryTest, ALaneIsBusyWhileAnyOfItsRowsIs) {
  Recording recording;
  recording.Add("disk", "disk", "a", {0, 10, 0, 100});
  recording.Add("disk", "disk", "b", {20, 30, 0, 100});
  recording.Add("disk 2", "disk", "c", {5, 12, 0, 50});
  recording.Add("disk 2", "disk", "d", {22, 25, 0, 50});
  const TimelineSummary summary = Summarize(recording.timeline);
  ASSERT_EQ(summary.lanes.size(), 1u);
  EXPECT_EQ(summary.lanes[0].lane, "disk");
  EXPECT_EQ(summary.lanes[0].spans, 4u);
  EXPECT_EQ(summary.lanes[0].busy_ns, 12 + 10);
  EXPECT_EQ(summary.lanes[0].bytes, 300u);
  EXPECT_EQ(summary.wall_ns, 30);
}

TEST(TimelineSummaryTest, StallsAddUpByCauseTheLongestFirst) {
  Recording recording;
  const auto stall = [&](const char* name, int64_t begin, int64_t end) {
    recording.Add("stall", "stall", name, {begin, end, 0, 1000});
  };
  stall("waits for upload", 0, 10);
  stall("waits for disk: blk.0", 20, 40);
  stall("waits for disk: blk.1: part", 50, 90);
  stall("waits for disk: blk.2", 90, 100);
  const TimelineSummary summary = Summarize(recording.timeline);
  ASSERT_EQ(summary.stalls.size(), 2u);
  const StallSummary& disk = summary.stalls[0];
  EXPECT_EQ(disk.cause, "waits for disk");
  EXPECT_EQ(disk.count, 3u);
  EXPECT_EQ(disk.total_ns, 70);
  EXPECT_EQ(disk.longest_ns, 40);
  EXPECT_EQ(disk.longest_for, "blk.1: part");
  EXPECT_EQ(summary.stalls[1].cause, "waits for upload");
  EXPECT_EQ(summary.stalls[1].longest_for, "");
  EXPECT_EQ(summary.stall_ns, 80);
  // What it waited for did not move in its lane.
  EXPECT_EQ(summary.lanes[0].bytes, 0u);

  const nlohmann::json page = SummaryJson(summary);
  EXPECT_EQ(page["stall_share"], 0.8);
  EXPECT_EQ(page["stalls"][0]["share"], 0.7);
}

TEST(TimelineSummaryTest, APassIsWhatComputesAndWaitsNotReadsAheadOfIt) {
  Recording recording;
  recording.Add("disk", "disk", "a", {0, 10, 0, 100});
  recording.Add("disk", "disk", "b", {15, 30, 1, 70});
  recording.Add("disk", "disk", "c", {60, 70, 2, 70});  // never computed
  recording.Add("ffn", "ffn", "a", {10, 20, 0});
  recording.Add("ffn", "ffn", "b", {30, 60, 1});
  recording.Add("stall", "stall", "waits for disk", {0, 10, 0});
  recording.Add("stall", "stall", "waits for disk", {20, 30, 1});
  recording.Add("sampler", "sampler", "x", {65, 66, -1});
  const TimelineSummary summary = Summarize(recording.timeline);
  ASSERT_EQ(summary.passes.size(), 2u);
  EXPECT_EQ(summary.passes[0].pass, 0);
  EXPECT_EQ(summary.passes[0].begin_ns, 0);
  EXPECT_EQ(summary.passes[0].end_ns, 20);
  EXPECT_EQ(summary.passes[0].stall_ns, 10);
  EXPECT_EQ(summary.passes[0].read_bytes, 100u);
  EXPECT_EQ(summary.passes[1].begin_ns, 20);
  EXPECT_EQ(summary.passes[1].end_ns, 60);
  EXPECT_EQ(summary.passes[1].read_bytes, 70u);
  EXPECT_EQ(summary.median_pass_ns, 30);  // of 20 and 40
}

TEST(TimelineSummaryTest, TheMedianOfAnOddCountIsTheMiddleOne) {
  Recording recording;
  recording.Add("ffn", "ffn", "a", {0, 100, 0});
  recording.Add("ffn", "ffn", "a", {100, 101, 1});
  recording.Add("ffn", "ffn", "a", {101, 111, 2});
  EXPECT_EQ(Summarize(recording.timeline).median_pass_ns, 10);
}

TEST(TimelineSummaryTest, NothingSumsUpToNothing) {
  const TimelineSummary summary = Summarize({});
  EXPECT_THAT(summary.lanes, IsEmpty());
  EXPECT_THAT(summary.stalls, IsEmpty());
  EXPECT_THAT(summary.passes, IsEmpty());
  EXPECT_EQ(SummaryJson(summary)["stall_share"], 0.0);
}

}  // namespace
}  // namespace coldstream
