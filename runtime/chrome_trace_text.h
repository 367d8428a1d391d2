// The text of a Chrome trace: batches of events in, JSON out.
//
// A lane is a thread of the trace. Spans of one lane that overlap are spread
// over rows, each a thread of its own ("disk", "disk 2", ...), because viewers
// nest what overlaps in one thread. Counters are "C" events. Times are
// microseconds, with three decimals, since the earliest event of the first
// batch.
//
//   text.AppendHeader(&out);
//   for (const TraceEvent& event : batch.events())  // sorted
//     text.AppendEvent(event, batch.NameOf(event), &out);
//   text.AppendFooter(&out);
//
// Thread-safety: one caller at a time.
// Source: the Trace Event Format, "JSON Object Format".
#ifndef COLDSTREAM_RUNTIME_CHROME_TRACE_TEXT_H_
#define COLDSTREAM_RUNTIME_CHROME_TRACE_TEXT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/trace.h"
#include "runtime/trace_batch.h"

namespace coldstream {

class ChromeTraceText {
 public:
  // What one call appends at most.
  static constexpr size_t kMaxEventBytes = 6 * TraceBatch::kMaxNameBytes + 1024;
  // Of one lane. More spans at once than that share the last row.
  static constexpr size_t kMaxRows = 64;

  void AppendHeader(std::string* out);
  void AppendEvent(const TraceEvent& event, std::string_view name,
                   std::string* out);
  void AppendFooter(std::string* out);

 private:
  struct Lane {
    size_t rows = 0;                             // in use
    std::array<int64_t, kMaxRows> free_at_ns{};  // [row]
  };

  size_t TakeRow(const TraceEvent& span, std::string* out);
  void AppendRowNames(size_t lane, size_t row, std::string* out);
  void AppendSpan(const TraceEvent& span, std::string_view name,
                  std::string* out);
  void AppendCount(const TraceEvent& count, std::string* out);

  std::array<Lane, kTraceLanes> lanes_;
  std::optional<int64_t> origin_ns_;
  uint64_t events_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_CHROME_TRACE_TEXT_H_
