#include "runtime/chrome_trace.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/small_disk.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ChromeTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto trace = ChromeTrace::Create(path_);
    ASSERT_THAT(trace, IsOk());
    trace_ = *std::move(trace);
  }

  json Finished() {
    EXPECT_THAT(trace_->Finish(), IsOk());
    std::ifstream file(path_);
    return json::parse(file);
  }

  const TempDir dir_;
  const std::string path_ = dir_.Path("t.json");
  std::unique_ptr<ChromeTrace> trace_;
};

std::vector<json> OfPhase(const json& trace, const std::string& phase) {
  std::vector<json> events;
  for (const json& event : trace.at("traceEvents"))
    if (event.at("ph") == phase) events.push_back(event);
  return events;
}

// Of the threads, by their number, which is their place.
std::map<int, std::string> ThreadNames(const json& trace) {
  std::map<int, std::string> names;
  for (const json& event : OfPhase(trace, "M"))
    if (event.at("name") == "thread_name")
      names[event.at("tid")] = event.at("args").at("name");
  return names;
}

// The name of the thread that the span of this name is in.
std::string RowOf(const json& trace, const std::string& name) {
  for (const json& event : OfPhase(trace, "X"))
    if (event.at("name") == name) return ThreadNames(trace).at(event.at("tid"));
  return "none";
}

TEST_F(ChromeTraceTest, ATraceOfNothingIsValid) {
  const json trace = Finished();
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  EXPECT_EQ(trace["otherData"]["events"], 0);
  ASSERT_EQ(trace["traceEvents"].size(), 1u);
  EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "coldstream");
}

TEST_F(ChromeTraceTest, ASpanHasItsLaneTimesAndArguments) {
  trace_->Span({.lane = TraceLane::kDisk,
                .name = "blk.0",
                .begin_ns = 5'000'000'001,
                .end_ns = 5'000'500'001,
                .pass = 2,
                .bytes = 2'000'000});
  trace_->Span({.lane = TraceLane::kStall,
                .name = "disk",
                .begin_ns = 5'000'001'234,
                .end_ns = 5'000'002'235,
                .bytes = 2'000'000});
  const json trace = Finished();
  const std::vector<json> spans = OfPhase(trace, "X");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0]["cat"], "disk");
  EXPECT_EQ(spans[0]["name"], "blk.0");
  EXPECT_EQ(spans[0]["ts"], 0.0);
  EXPECT_EQ(spans[0]["dur"], 500.0);
  EXPECT_EQ(spans[0]["args"],
            json({{"pass", 2}, {"bytes", 2'000'000}, {"GB/s", 4.0}}));
  EXPECT_EQ(spans[1]["ts"], 1.233);
  EXPECT_EQ(spans[1]["dur"], 1.001);
  // The bytes waited for: no rate.
  EXPECT_EQ(spans[1]["args"], json({{"bytes", 2'000'000}}));
}

TEST_F(ChromeTraceTest, TheEarliestEventIsTheOrigin) {
  trace_->Count(TraceCounter::kFreeSlots, 9000, 3);
  trace_->Span({.name = "early", .begin_ns = 7000, .end_ns = 9500});
  const json trace = Finished();
  EXPECT_EQ(OfPhase(trace, "X")[0]["ts"], 0.0);
  EXPECT_EQ(OfPhase(trace, "C")[0]["ts"], 2.0);
  EXPECT_EQ(trace["otherData"]["origin_ns"], 7000);
}

TEST_F(ChromeTraceTest, EachLaneIsANamedThreadInTheOrderOfTheEnum) {
  for (int lane = kTraceLanes - 1; lane >= 0; --lane)
    trace_->Span({.lane = static_cast<TraceLane>(lane),
                  .name = "x",
                  .begin_ns = 10,
                  .end_ns = 20});
  std::vector<std::string> names;
  for (const auto& [thread, name] : ThreadNames(Finished()))
    names.push_back(name);
  EXPECT_THAT(names, ElementsAre("disk", "upload", "embedding", "attention",
                                 "ffn", "output head", "sampler", "stall"));
}

TEST_F(ChromeTraceTest, SpansThatOverlapAreSpreadOverRows) {
  const auto read = [&](const char* name, int64_t begin, int64_t end) {
    trace_->Span({.name = name, .begin_ns = begin, .end_ns = end});
  };
  // In the order in which they end, as a reader tells them.
  read("b", 50, 80);
  read("a", 0, 100);
  read("d", 80, 110);
  read("c", 60, 120);
  read("e", 100, 130);
  const json trace = Finished();
  EXPECT_EQ(RowOf(trace, "a"), "disk");
  EXPECT_EQ(RowOf(trace, "b"), "disk 2");
  EXPECT_EQ(RowOf(trace, "c"), "disk 3");
  EXPECT_EQ(RowOf(trace, "d"), "disk 2");
  EXPECT_EQ(RowOf(trace, "e"), "disk");
}

TEST_F(ChromeTraceTest, CountersKeepTheOrderOfEqualTimes) {
  for (const int value : {4, 3, 2, 3})
    trace_->Count(TraceCounter::kFreeSlots, 1000, value);
  trace_->Count(TraceCounter::kBytesInFlight, 1000, int64_t{5} << 30);
  std::vector<int64_t> slots;
  std::vector<int64_t> bytes;
  for (const json& event : OfPhase(Finished(), "C"))
    (event["name"] == "free slots" ? slots : bytes)
        .push_back(event["args"]["value"].get<int64_t>());
  EXPECT_THAT(slots, ElementsAre(4, 3, 2, 3));
  EXPECT_THAT(bytes, ElementsAre(int64_t{5} << 30));
}

TEST_F(ChromeTraceTest, AnyNameIsWrittenAsValidJson) {
  const std::string names[] = {"a \"quoted\" \\ name\n\t\x01", "tōhoku 東北",
                               std::string("\0x", 2), ""};
  for (const std::string& name : names)
    trace_->Span({.name = name, .begin_ns = 10, .end_ns = 20});
  trace_->Span({.name = "bad \xC3( \xFF", .begin_ns = 10, .end_ns = 20});
  // Cut; each of its bytes takes six.
  trace_->Span(
      {.name = "x" + std::string(1000, '\x01'), .begin_ns = 30, .end_ns = 40});
  const std::vector<json> spans = OfPhase(Finished(), "X");
  ASSERT_EQ(spans.size(), 6u);
  for (size_t i = 0; i < std::size(names); ++i)
    EXPECT_EQ(spans[i]["name"], names[i]);
  EXPECT_EQ(spans[4]["name"], "bad \uFFFD( \uFFFD");
  EXPECT_EQ(spans[5]["name"].get<std::string>().size(),
            TraceBatch::kMaxNameBytes);
}

TEST_F(ChromeTraceTest, ASpanThatEndsBeforeItBeginsHasNoLength) {
  trace_->Span({.name = "x", .begin_ns = 100, .end_ns = 50, .bytes = 7});
  const std::vector<json> spans = OfPhase(Finished(), "X");
  EXPECT_EQ(spans[0]["dur"], 0.0);
  EXPECT_EQ(spans[0]["args"], json({{"bytes", 7}}));
}

TEST_F(ChromeTraceTest, WritesMoreThanItsMemoryHolds) {
  constexpr int kSpans = 5 * int{TraceBatch::kMaxEvents};
  for (int i = 0; i < kSpans; ++i)
    trace_->Span({.lane = TraceLane::kFfn,
                  .name = "layer " + std::to_string(i % 32),
                  .begin_ns = 100 * i,
                  .end_ns = 100 * i + 90});
  const json trace = Finished();
  const std::vector<json> spans = OfPhase(trace, "X");
  ASSERT_EQ(spans.size(), size_t{kSpans});
  EXPECT_EQ(spans[kSpans - 1]["ts"], (kSpans - 1) / 10.0);
  EXPECT_EQ(ThreadNames(trace).size(), 1u);  // one after the other: one row
}

TEST_F(ChromeTraceTest, ThreadsMayAddAndFinishAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kEach = 6000;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        trace_->Span({.lane = TraceLane::kAttention,
                      .name = std::to_string(t * kEach + i),
                      .begin_ns = i,
                      .end_ns = i + 1});
        trace_->Count(TraceCounter::kFreeSlots, i, t);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::thread late([&] {
    for (int i = 0; i < kEach; ++i)
      trace_->Span({.name = "late", .begin_ns = kEach, .end_ns = kEach});
  });
  const json trace = Finished();
  late.join();
  std::set<std::string> names;
  for (const json& span : OfPhase(trace, "X"))
    if (span["name"] != "late") names.insert(span["name"]);
  EXPECT_EQ(names.size(), size_t{kThreads * kEach});
  EXPECT_EQ(OfPhase(trace, "C").size(), size_t{kThreads * kEach});
}

TEST_F(ChromeTraceTest, FinishAnswersTheSameAgainAndDropsWhatComesLater) {
  ASSERT_THAT(trace_->Finish(), IsOk());
  const auto bytes = std::filesystem::file_size(path_);
  trace_->Span({.name = "late", .begin_ns = 1, .end_ns = 2});
  EXPECT_THAT(trace_->Finish(), IsOk());
  EXPECT_EQ(std::filesystem::file_size(path_), bytes);
}

TEST_F(ChromeTraceTest, WithoutFinishNoFileIsLeft) {
  trace_->Span({.name = "x", .begin_ns = 1, .end_ns = 2});
  trace_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

TEST(ChromeTraceErrorTest, APathThatCannotBeWrittenIsAnErrorAtOnce) {
  const TempDir dir;
  EXPECT_THAT(ChromeTrace::Create(dir.Path("none/t.json")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/t.json")));
  EXPECT_THAT(ChromeTrace::Create(dir.path()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ChromeTraceErrorTest, AFullDiskIsReportedByFinishOnly) {
  const TempDir dir;
  const auto body = [&] {
    auto trace = ChromeTrace::Create(dir.Path("t.json"));
    EXPECT_THAT(trace, IsOk());
    for (int i = 0; i < 3 * int{TraceBatch::kMaxEvents}; ++i)
      (*trace)->Span({.name = "blk", .begin_ns = i, .end_ns = i + 1});
    const Status status = (*trace)->Finish();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("t.json")));
    EXPECT_EQ((*trace)->Finish(), status);
    EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
    return !::testing::Test::HasFailure();
  };
  const SmallDiskResult result = RunOnSmallDisk(dir.path(), 256 << 10, body);
  if (result == SmallDiskResult::kNotPossible)
    GTEST_SKIP() << "cannot mount a small disk here";
  EXPECT_EQ(result, SmallDiskResult::kHeld);
}

}  // namespace
}  // namespace coldstream
