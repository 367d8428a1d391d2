#include "tools/timeline_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

using nlohmann::json;

// Text of a member, "" where it is absent or something else.
std::string TextOf(const json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end() || !member->is_string()) return "";
  return member->get<std::string>();
}

// Processes and threads are named by numbers or by text.
std::string IdOf(const json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end()) return "";
  if (member->is_string()) return member->get<std::string>();
  if (member->is_number_integer())
    return std::to_string(member->get<int64_t>());
  return "";
}

const json& ArgumentsOf(const json& event) {
  static const json kNone = json::object();
  const auto member = event.find("args");
  return member != event.end() && member->is_object() ? *member : kNone;
}

template <typename Integer>
Integer IntegerOf(const json& object, const char* key, Integer otherwise) {
  const auto member = object.find(key);
  if (member == object.end() || !member->is_number_integer()) return otherwise;
  if (!member->is_number_unsigned() && std::is_unsigned_v<Integer>)
    return otherwise;
  return member->get<Integer>();
}

// "disk 2" is a row of the lane "disk".
std::string LaneOf(const std::string& row) {
  const size_t space = row.rfind(' ');
  if (space == std::string::npos || space == 0 || space + 1 == row.size())
    return row;
  const bool number =
      row.find_first_not_of("0123456789", space + 1) == std::string::npos;
  return number ? row.substr(0, space) : row;
}

}  // namespace

Status TimelineBuilder::Bad(const std::string& what) const {
  return absl::DataLossError(
      absl::StrFormat("traceEvents[%d]: %s", event_ - 1, what));
}

Status TimelineBuilder::Add(const json& event) {
  ++event_;
  if (!event.is_object()) return Bad("expected an object");
  const std::string phase = TextOf(event, "ph");
  if (phase == "X") return AddSpan(event);
  if (phase == "C") return AddCount(event);
  if (phase == "M") {
    AddMetadata(event);
  } else {
    ++timeline_.ignored;
  }
  return absl::OkStatus();
}

Status TimelineBuilder::AddSpan(const json& event) {
  ASSIGN_OR_RETURN(const int64_t begin_ns, Nanoseconds(event, "ts"));
  ASSIGN_OR_RETURN(const int64_t duration_ns, Nanoseconds(event, "dur"));
  if (duration_ns < 0) return Bad("\"dur\" is below zero");
  const json& arguments = ArgumentsOf(event);
  RowOf(event).row.spans.push_back({
      .begin_ns = begin_ns,
      .end_ns = begin_ns + duration_ns,
      .pass = IntegerOf<int64_t>(arguments, "pass", -1),
      .bytes = IntegerOf<uint64_t>(arguments, "bytes", 0),
      .name = IndexOf(TextOf(event, "name")),
  });
  return absl::OkStatus();
}

// Each number among the arguments is a series of its own.
Status TimelineBuilder::AddCount(const json& event) {
  ASSIGN_OR_RETURN(const int64_t at_ns, Nanoseconds(event, "ts"));
  for (const auto& [key, value] : ArgumentsOf(event).items()) {
    if (!value.is_number()) continue;
    std::string name = TextOf(event, "name");
    if (key != "value") name += ": " + key;
    const auto [entry, added] =
        counters_.try_emplace(name, timeline_.counters.size());
    if (added) timeline_.counters.push_back({.name = name, .points = {}});
    timeline_.counters[entry->second].points.push_back(
        {at_ns, value.get<double>()});
  }
  return absl::OkStatus();
}

void TimelineBuilder::AddMetadata(const json& event) {
  const std::string name = TextOf(event, "name");
  if (name == "thread_name") {
    RowOf(event).row.name = TextOf(ArgumentsOf(event), "name");
  } else if (name == "thread_sort_index") {
    Row& row = RowOf(event);
    row.place = IntegerOf<int64_t>(ArgumentsOf(event), "sort_index", row.place);
  }
}

// Microseconds in the file.
StatusOr<int64_t> TimelineBuilder::Nanoseconds(const json& event,
                                               const char* key) const {
  const auto member = event.find(key);
  if (member == event.end() || !member->is_number())
    return Bad(absl::StrFormat("no number \"%s\"", key));
  const double ns = member->get<double>() * 1000;
  // A century; sums of two stay far from the ends of int64_t.
  constexpr double kMost = 3.2e18;
  if (!(std::abs(ns) <= kMost))
    return Bad(absl::StrFormat("\"%s\" is out of range", key));
  return std::llround(ns);
}

TimelineBuilder::Row& TimelineBuilder::RowOf(const json& event) {
  const ThreadKey key(IdOf(event, "pid"), IdOf(event, "tid"));
  const auto [entry, added] = rows_.try_emplace(key);
  if (added) entry->second.row.name = "thread " + key.second;
  return entry->second;
}

uint32_t TimelineBuilder::IndexOf(const std::string& name) {
  const auto [entry, added] =
      names_.try_emplace(name, static_cast<uint32_t>(timeline_.names.size()));
  if (added) timeline_.names.push_back(name);
  return entry->second;
}

void TimelineBuilder::ShiftToZero(Timeline* timeline) const {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const TimelineRow& row : timeline->rows)
    first = std::min(first, row.spans.front().begin_ns);
  for (const TimelineCounter& counter : timeline->counters)
    first = std::min(first, counter.points.front().at_ns);
  for (TimelineRow& row : timeline->rows) {
    for (TimelineSpan& span : row.spans) {
      span.begin_ns -= first;
      span.end_ns -= first;
      timeline->wall_ns = std::max(timeline->wall_ns, span.end_ns);
    }
  }
  for (TimelineCounter& counter : timeline->counters) {
    for (TimelineCounter::Point& point : counter.points) point.at_ns -= first;
    timeline->wall_ns =
        std::max(timeline->wall_ns, counter.points.back().at_ns);
  }
}

Timeline TimelineBuilder::Build() && {
  std::vector<Row> rows;
  for (auto& [key, row] : rows_) {
    if (row.row.spans.empty()) continue;
    row.row.lane = LaneOf(row.row.name);
    std::ranges::stable_sort(row.row.spans, {}, &TimelineSpan::begin_ns);
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, {}, &Row::place);
  Timeline timeline = std::move(timeline_);
  for (Row& row : rows) timeline.rows.push_back(std::move(row.row));
  for (TimelineCounter& counter : timeline.counters)
    std::ranges::stable_sort(counter.points, {},
                             &TimelineCounter::Point::at_ns);
  ShiftToZero(&timeline);
  return timeline;
}

}  // namespace coldstream
