#include "tools/timeline_page.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "nlohmann/json.hpp"
#include "tools/timeline_assets.h"

namespace coldstream {
namespace {

using nlohmann::json;

// A column for each field: half the bytes of an object for each span. Times are
// steps from the one before.
json RowJson(const TimelineRow& row) {
  json begins = json::array();
  json durations = json::array();
  json names = json::array();
  json passes = json::array();
  json bytes = json::array();
  int64_t last = 0;
  for (const TimelineSpan& span : row.spans) {
    begins.push_back(span.begin_ns - std::exchange(last, span.begin_ns));
    durations.push_back(span.end_ns - span.begin_ns);
    names.push_back(span.name);
    passes.push_back(span.pass);
    bytes.push_back(span.bytes);
  }
  return {{"name", row.name},
          {"lane", row.lane},
          {"begin_step", std::move(begins)},
          {"duration", std::move(durations)},
          {"names", std::move(names)},
          {"pass", std::move(passes)},
          {"bytes", std::move(bytes)}};
}

json CounterJson(const TimelineCounter& counter) {
  json times = json::array();
  json values = json::array();
  int64_t last = 0;
  for (const TimelineCounter::Point& point : counter.points) {
    times.push_back(point.at_ns - std::exchange(last, point.at_ns));
    values.push_back(point.value);
  }
  return {{"name", counter.name},
          {"at_step", std::move(times)},
          {"value", std::move(values)}};
}

// JSON that may stand in a <script>: with no "<" nothing can end it, nor open a
// comment in it.
std::string ScriptSafe(const json& data) {
  const std::string text =
      data.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string HtmlEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string TimelinePage(const Timeline& timeline,
                         const TimelineSummary& summary,
                         std::string_view title) {
  json data = {{"names", timeline.names},
               {"ignored", timeline.ignored},
               {"rows", json::array()},
               {"counters", json::array()},
               {"summary", SummaryJson(summary)}};
  for (const TimelineRow& row : timeline.rows)
    data["rows"].push_back(RowJson(row));
  for (const TimelineCounter& counter : timeline.counters)
    data["counters"].push_back(CounterJson(counter));

  const std::pair<std::string_view, std::string> parts[] = {
      {"{{title}}", HtmlEscaped(title)},
      {"{{style}}", std::string(kTimelineStyle)},
      {"{{heading}}", HtmlEscaped(title)},
      {"{{data}}", ScriptSafe(data)},
      {"{{script}}", std::string(kTimelineScript)},
  };
  std::string page;
  std::string_view rest = kTimelineHtml;
  for (const auto& [place, text] : parts) {  // in the template's order
    const size_t at = rest.find(place);
    CHECK(at != std::string_view::npos);
    page.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + place.size());
  }
  return page.append(rest);
}

}  // namespace coldstream
