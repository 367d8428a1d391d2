// The spans and counts of a stretch of time, kept as they came in memory taken
// once: what ChromeTrace fills while the run goes on.
//
//   TraceBatch batch;
//   if (!batch.Add(span)) { /* full: write it out, then Clear() */ }
//
// Adding allocates nothing. Names are copied, cut to kMaxNameBytes.
// Thread-safety: one caller at a time.
#ifndef COLDSTREAM_RUNTIME_TRACE_BATCH_H_
#define COLDSTREAM_RUNTIME_TRACE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace.h"

namespace coldstream {

// A span or a count.
struct TraceEvent {
  enum class Kind : uint8_t { kSpan, kCount };

  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // spans; not before begin_ns
  int64_t pass = -1;   // spans
  int64_t value = 0;   // spans: bytes, 0 where not known; counts: the count
  uint32_t order = 0;  // of arrival in the batch
  uint32_t name_at = 0;
  uint16_t name_bytes = 0;
  Kind kind = Kind::kSpan;
  uint8_t index = 0;  // a TraceLane or a TraceCounter
};

class TraceBatch {
 public:
  static constexpr size_t kMaxNameBytes = 160;
  static constexpr size_t kMaxEvents = 8192;
  static constexpr size_t kNamesBytes = kMaxEvents * 16;
  static constexpr uint64_t kMemoryBytes =
      kMaxEvents * sizeof(TraceEvent) + kNamesBytes;

  TraceBatch();

  // False, and nothing is added, where there is no room left.
  bool Add(const TraceSpan& span);
  bool Add(TraceCounter counter, int64_t at_ns, int64_t value);

  // By their begin; those that begin together stay as they came.
  void Sort();
  void Clear();

  const std::vector<TraceEvent>& events() const { return events_; }
  std::string_view NameOf(const TraceEvent& event) const {
    return std::string_view(names_).substr(event.name_at, event.name_bytes);
  }

 private:
  std::vector<TraceEvent> events_;
  std::string names_;  // one after the other
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_TRACE_BATCH_H_
