#include "runtime/trace_batch.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace coldstream {

TraceBatch::TraceBatch() {
  events_.reserve(kMaxEvents);
  names_.reserve(kNamesBytes);
}

bool TraceBatch::Add(const TraceSpan& span) {
  const std::string_view name = span.name.substr(0, kMaxNameBytes);
  if (events_.size() == kMaxEvents || names_.size() + name.size() > kNamesBytes)
    return false;
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  events_.push_back({
      .begin_ns = span.begin_ns,
      .end_ns = std::max(span.begin_ns, span.end_ns),
      .pass = span.pass,
      .value = static_cast<int64_t>(std::min(span.bytes, kMost)),
      .order = static_cast<uint32_t>(events_.size()),
      .name_at = static_cast<uint32_t>(names_.size()),
      .name_bytes = static_cast<uint16_t>(name.size()),
      .kind = TraceEvent::Kind::kSpan,
      .index = static_cast<uint8_t>(span.lane),
  });
  names_.append(name);
  return true;
}

bool TraceBatch::Add(TraceCounter counter, int64_t at_ns, int64_t value) {
  if (events_.size() == kMaxEvents) return false;
  events_.push_back({
      .begin_ns = at_ns,
      .end_ns = at_ns,
      .value = value,
      .order = static_cast<uint32_t>(events_.size()),
      .kind = TraceEvent::Kind::kCount,
      .index = static_cast<uint8_t>(counter),
  });
  return true;
}

void TraceBatch::Sort() {
  // Not std::stable_sort, which allocates.
  std::ranges::sort(events_, {}, [](const TraceEvent& event) {
    return std::tuple(event.begin_ns, event.order);
  });
}

void TraceBatch::Clear() {
  events_.clear();
  names_.clear();
}

}  // namespace coldstream
