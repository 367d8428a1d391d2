#include "tools/timeline_summary.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace coldstream {
namespace {

using nlohmann::json;

constexpr std::string_view kStallLane = "stall";
constexpr std::string_view kDiskLane = "disk";

bool RunsAhead(std::string_view lane) {
  return lane == kDiskLane || lane == "upload";
}

// Time covered by at least one of `spans`.
int64_t CoveredNs(std::vector<std::pair<int64_t, int64_t>> spans) {
  std::ranges::sort(spans);
  int64_t covered = 0;
  int64_t until = std::numeric_limits<int64_t>::min();
  for (const auto& [begin, end] : spans) {
    if (end <= until) continue;
    covered += end - std::max(begin, until);
    until = end;
  }
  return covered;
}

std::vector<LaneSummary> SummarizeLanes(const Timeline& timeline) {
  std::vector<LaneSummary> lanes;
  std::map<std::string, std::vector<std::pair<int64_t, int64_t>>> times;
  for (const TimelineRow& row : timeline.rows) {
    auto lane = std::ranges::find(lanes, row.lane, &LaneSummary::lane);
    if (lane == lanes.end())
      lane = lanes.insert(lanes.end(), LaneSummary{.lane = row.lane});
    lane->spans += row.spans.size();
    for (const TimelineSpan& span : row.spans) {
      // What a stall names are the bytes waited for, not moved.
      if (row.lane != kStallLane) lane->bytes += span.bytes;
      times[row.lane].emplace_back(span.begin_ns, span.end_ns);
    }
  }
  for (LaneSummary& lane : lanes)
    lane.busy_ns = CoveredNs(std::move(times[lane.lane]));
  return lanes;
}

std::vector<StallSummary> SummarizeStalls(const Timeline& timeline) {
  std::map<std::string, StallSummary> by_cause;
  for (const TimelineRow& row : timeline.rows) {
    if (row.lane != kStallLane) continue;
    for (const TimelineSpan& span : row.spans) {
      const std::string& name = timeline.names[span.name];
      const size_t colon = name.find(": ");
      StallSummary& stall = by_cause[name.substr(0, colon)];
      const int64_t ns = span.end_ns - span.begin_ns;
      ++stall.count;
      stall.total_ns += ns;
      if (ns <= stall.longest_ns && stall.count > 1) continue;
      stall.longest_ns = ns;
      stall.longest_for =
          colon == std::string::npos ? "" : name.substr(colon + 2);
    }
  }
  std::vector<StallSummary> stalls;
  stalls.reserve(by_cause.size());
  for (auto& [cause, stall] : by_cause) {
    stall.cause = cause;
    stalls.push_back(std::move(stall));
  }
  std::ranges::stable_sort(stalls, std::greater<>(), &StallSummary::total_ns);
  return stalls;
}

// A pass that only reads were made for has not begun: it is left out.
std::vector<PassSummary> SummarizePasses(const Timeline& timeline) {
  std::map<int64_t, PassSummary> passes;
  for (const TimelineRow& row : timeline.rows) {
    if (RunsAhead(row.lane)) continue;
    for (const TimelineSpan& span : row.spans) {
      if (span.pass < 0) continue;
      const auto [entry, added] = passes.try_emplace(span.pass);
      PassSummary& pass = entry->second;
      if (added) pass = {span.pass, span.begin_ns, span.end_ns};
      pass.begin_ns = std::min(pass.begin_ns, span.begin_ns);
      pass.end_ns = std::max(pass.end_ns, span.end_ns);
      if (row.lane == kStallLane) pass.stall_ns += span.end_ns - span.begin_ns;
    }
  }
  for (const TimelineRow& row : timeline.rows) {
    if (row.lane != kDiskLane) continue;
    for (const TimelineSpan& span : row.spans) {
      const auto pass = passes.find(span.pass);
      if (pass != passes.end()) pass->second.read_bytes += span.bytes;
    }
  }
  std::vector<PassSummary> result;
  result.reserve(passes.size());
  for (const auto& [number, pass] : passes) result.push_back(pass);
  return result;
}

int64_t MedianNs(const std::vector<PassSummary>& passes) {
  if (passes.empty()) return 0;
  std::vector<int64_t> ns;
  ns.reserve(passes.size());
  for (const PassSummary& pass : passes)
    ns.push_back(pass.end_ns - pass.begin_ns);
  std::ranges::sort(ns);
  const size_t half = ns.size() / 2;
  return ns.size() % 2 == 1 ? ns[half]
                            : ns[half - 1] + (ns[half] - ns[half - 1]) / 2;
}

}  // namespace

TimelineSummary Summarize(const Timeline& timeline) {
  TimelineSummary summary;
  summary.wall_ns = timeline.wall_ns;
  summary.lanes = SummarizeLanes(timeline);
  summary.stalls = SummarizeStalls(timeline);
  for (const StallSummary& stall : summary.stalls)
    summary.stall_ns += stall.total_ns;
  summary.passes = SummarizePasses(timeline);
  summary.median_pass_ns = MedianNs(summary.passes);
  return summary;
}

json SummaryJson(const TimelineSummary& summary) {
  const auto share = [&](int64_t ns) {
    return summary.wall_ns > 0
               ? static_cast<double>(ns) / static_cast<double>(summary.wall_ns)
               : 0.0;
  };
  json lanes = json::array();
  for (const LaneSummary& lane : summary.lanes) {
    lanes.push_back({{"lane", lane.lane},
                     {"spans", lane.spans},
                     {"busy_ns", lane.busy_ns},
                     {"share", share(lane.busy_ns)},
                     {"bytes", lane.bytes}});
  }
  json stalls = json::array();
  for (const StallSummary& stall : summary.stalls) {
    stalls.push_back({{"cause", stall.cause},
                      {"count", stall.count},
                      {"total_ns", stall.total_ns},
                      {"share", share(stall.total_ns)},
                      {"longest_ns", stall.longest_ns},
                      {"longest_for", stall.longest_for}});
  }
  json passes = json::array();
  for (const PassSummary& pass : summary.passes) {
    passes.push_back({{"pass", pass.pass},
                      {"begin_ns", pass.begin_ns},
                      {"end_ns", pass.end_ns},
                      {"stall_ns", pass.stall_ns},
                      {"read_bytes", pass.read_bytes}});
  }
  return {{"wall_ns", summary.wall_ns},
          {"lanes", std::move(lanes)},
          {"stalls", std::move(stalls)},
          {"stall_ns", summary.stall_ns},
          {"stall_share", share(summary.stall_ns)},
          {"passes", std::move(passes)},
          {"median_pass_ns", summary.median_pass_ns}};
}

}  // namespace coldstream
