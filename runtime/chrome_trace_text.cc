#include "runtime/chrome_trace_text.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "runtime/utf8.h"

namespace coldstream {
namespace {

constexpr int kProcess = 1;
constexpr size_t kThreadsPerLane = 100;
static_assert(ChromeTraceText::kMaxRows < kThreadsPerLane);

// Threads are drawn in the order of these numbers.
size_t ThreadOf(size_t lane, size_t row) {
  return (lane + 1) * kThreadsPerLane + row;
}

// Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    if (!c.valid) {
      AppendUtf8(0xFFFD, out);
    } else if (c.code == '"' || c.code == '\\') {
      out->push_back('\\');
      out->push_back(text[pos]);
    } else if (c.code < 0x20) {
      absl::StrAppendFormat(out, "\\u%04x", static_cast<uint32_t>(c.code));
    } else {
      out->append(text.substr(pos, c.length));
    }
    pos += c.length;
  }
  out->push_back('"');
}

void AppendMicroseconds(int64_t ns, std::string* out) {
  if (ns < 0) out->push_back('-');
  const uint64_t size =
      ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  absl::StrAppendFormat(out, "%d.%03d", size / 1000, size % 1000);
}

}  // namespace

void ChromeTraceText::AppendHeader(std::string* out) {
  absl::StrAppendFormat(out,
                        "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
                        "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\","
                        "\"args\":{\"name\":\"coldstream\"}}",
                        kProcess);
}

void ChromeTraceText::AppendFooter(std::string* out) {
  absl::StrAppendFormat(out,
                        "\n],\"otherData\":{\"producer\":\"coldstream\","
                        "\"events\":%d,\"origin_ns\":%d}}\n",
                        events_, origin_ns_.value_or(0));
}

void ChromeTraceText::AppendEvent(const TraceEvent& event,
                                  std::string_view name, std::string* out) {
  if (!origin_ns_) origin_ns_ = event.begin_ns;
  ++events_;
  switch (event.kind) {
    case TraceEvent::Kind::kSpan:
      return AppendSpan(event, name, out);
    case TraceEvent::Kind::kCount:
      return AppendCount(event, out);
  }
}

void ChromeTraceText::AppendSpan(const TraceEvent& span, std::string_view name,
                                 std::string* out) {
  const size_t row = TakeRow(span, out);
  const int64_t duration_ns = span.end_ns - span.begin_ns;
  absl::StrAppendFormat(out, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":",
                        kProcess, ThreadOf(span.index, row));
  AppendMicroseconds(span.begin_ns - *origin_ns_, out);
  out->append(",\"dur\":");
  AppendMicroseconds(duration_ns, out);
  out->append(",\"cat\":");
  AppendJsonString(TraceLaneName(static_cast<TraceLane>(span.index)), out);
  out->append(",\"name\":");
  AppendJsonString(name, out);
  out->append(",\"args\":{");
  if (span.pass >= 0) absl::StrAppendFormat(out, "\"pass\":%d", span.pass);
  if (span.value > 0) {
    if (span.pass >= 0) out->push_back(',');
    absl::StrAppendFormat(out, "\"bytes\":%d", span.value);
    // Bytes a nanosecond are GB a second. Those of a stall did not move in it.
    const bool stall = span.index == static_cast<uint8_t>(TraceLane::kStall);
    if (duration_ns > 0 && !stall) {
      absl::StrAppendFormat(
          out, ",\"GB/s\":%.3f",
          static_cast<double>(span.value) / static_cast<double>(duration_ns));
    }
  }
  out->append("}}");
}

void ChromeTraceText::AppendCount(const TraceEvent& count, std::string* out) {
  absl::StrAppendFormat(
      out, ",\n{\"ph\":\"C\",\"pid\":%d,\"name\":\"%s\",\"ts\":", kProcess,
      TraceCounterName(static_cast<TraceCounter>(count.index)));
  AppendMicroseconds(count.begin_ns - *origin_ns_, out);
  absl::StrAppendFormat(out, ",\"args\":{\"value\":%d}}", count.value);
}

// The first row that is free when the span begins.
size_t ChromeTraceText::TakeRow(const TraceEvent& span, std::string* out) {
  Lane& lane = lanes_[span.index];
  size_t row = 0;
  while (row < lane.rows && lane.free_at_ns[row] > span.begin_ns) ++row;
  if (row == kMaxRows) --row;
  if (row == lane.rows) {
    AppendRowNames(span.index, row, out);
    ++lane.rows;
  }
  lane.free_at_ns[row] = std::max(lane.free_at_ns[row], span.end_ns);
  return row;
}

void ChromeTraceText::AppendRowNames(size_t lane, size_t row,
                                     std::string* out) {
  const size_t thread = ThreadOf(lane, row);
  std::string name = TraceLaneName(static_cast<TraceLane>(lane));
  if (row > 0) absl::StrAppendFormat(&name, " %d", row + 1);
  absl::StrAppendFormat(
      out,
      ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\","
      "\"args\":{\"name\":\"%s\"}}"
      ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_sort_index\","
      "\"args\":{\"sort_index\":%d}}",
      kProcess, thread, name, kProcess, thread, thread);
}

}  // namespace coldstream
