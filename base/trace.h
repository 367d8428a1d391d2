// What happened when: spans and counters of a run, for whoever wants to draw
// them.
//
// The engine tells a TraceSink what it does while it does it; nothing is kept
// here. With no sink (nullptr, the default everywhere) no clock is read.
// Units: times are nanoseconds of std::chrono::steady_clock.
// Thread-safety: a sink is called from several threads at once; spans may come
// in any order, and those of kDisk may overlap one another. Calls must not
// block for long: the ring's thread makes some of them.
#ifndef COLDSTREAM_BASE_TRACE_H_
#define COLDSTREAM_BASE_TRACE_H_

#include <chrono>
#include <cstdint>
#include <string_view>

namespace coldstream {

enum class TraceLane {
  kDisk,       // one read of a weight unit, from its first byte asked for
  kUpload,     // host to device copies
  kEmbedding,  // compute stages: one lane each
  kAttention,
  kFfn,
  kHead,
  kSampler,
  kStall,  // the computation waited; the name says for what
};
inline constexpr int kTraceLanes = 8;
const char* TraceLaneName(TraceLane lane);  // "disk", "upload", ...

enum class TraceCounter {
  kFreeSlots,
  kBytesInFlight,  // of unit reads begun and not finished
};
inline constexpr int kTraceCounters = 2;
const char* TraceCounterName(TraceCounter counter);

struct TraceSpan {
  TraceLane lane = TraceLane::kDisk;
  std::string_view name = {};  // valid during the call
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t pass = -1;   // -1: belongs to none
  uint64_t bytes = 0;  // moved or touched; 0: not known
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void Span(const TraceSpan& span) = 0;
  virtual void Count(TraceCounter counter, int64_t at_ns, int64_t value) = 0;
  // All the memory it will ever take, for the engine's plan.
  virtual uint64_t memory_bytes() const { return 0; }
};

inline int64_t TraceNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_TRACE_H_
