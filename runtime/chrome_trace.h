// A TraceSink that writes a file which Perfetto and chrome://tracing open.
//
//   ASSIGN_OR_RETURN(auto trace, ChromeTrace::Create("run.trace.json"));
//   options.trace = trace.get();
//   ...                                  // the run
//   RETURN_IF_ERROR(trace->Finish());    // the file has its name now
//
// Events are kept in memory taken at Create; whoever fills it turns it into
// text and appends that to the file, while the others go on in a second batch.
// Without Finish no file is left.
// Units: kMemoryBytes is all it takes, whatever the length of the run.
// Errors: Create and Finish: those of AtomicFile. One that comes up in between
// makes the rest of the trace be dropped, never the run end; Finish returns it.
// Thread-safety: thread-safe, Finish included; later events are dropped.
#ifndef COLDSTREAM_RUNTIME_CHROME_TRACE_H_
#define COLDSTREAM_RUNTIME_CHROME_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/status.h"
#include "base/trace.h"
#include "io/atomic_file.h"
#include "runtime/chrome_trace_text.h"
#include "runtime/trace_batch.h"

namespace coldstream {

class ChromeTrace : public TraceSink {
 public:
  static constexpr size_t kTextBytes = size_t{64} << 10;
  static constexpr uint64_t kMemoryBytes =
      2 * TraceBatch::kMemoryBytes + kTextBytes + sizeof(ChromeTraceText);

  static StatusOr<std::unique_ptr<ChromeTrace>> Create(const std::string& path);

  void Span(const TraceSpan& span) override;
  void Count(TraceCounter counter, int64_t at_ns, int64_t value) override;
  uint64_t memory_bytes() const override { return kMemoryBytes; }

  // Again: the same answer.
  Status Finish();

 private:
  explicit ChromeTrace(std::unique_ptr<AtomicFile> file);

  template <typename... Event>
  void Add(const Event&... event);
  void WriteBatch(uint64_t batch);
  void WriteEvents();
  void WriteText();

  // std::mutex, because TSan cannot see into Debian's absl::Mutex.
  std::mutex filling_mutex_;
  // Guarded by filling_mutex_.
  std::unique_ptr<TraceBatch> filling_;
  uint64_t batch_ = 0;  // counts the batches filled
  bool finished_ = false;

  std::mutex writing_mutex_;  // taken before filling_mutex_, never after
  // Guarded by writing_mutex_.
  std::unique_ptr<TraceBatch> writing_;  // empty between calls
  ChromeTraceText format_;
  std::string text_;
  std::unique_ptr<AtomicFile> file_;  // nullptr: finished
  Status status_;                     // the first error
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_CHROME_TRACE_H_
