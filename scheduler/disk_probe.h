// How fast a disk reads a model, and with which chunk and depth.
//
// A handful of settings takes turns, in slices of some milliseconds spread over
// the file; settings far behind drop out. Reads go through our own Reader into
// buffers like the engine's slots. Settings are compared by the median of their
// slices: virtual disks pause for part of every 100 ms or so (a rate limit's
// refill), and a mean would be decided by who met a pause. The disk's own rate
// is the mean, pauses included. Of the settings within 2 % of the best the
// smallest is chosen: fewest bytes in flight, then lower depth.
//
//   ASSIGN_OR_RETURN(const DiskProbe probe, ProbeDisk(file, {}));
//   if (probe.doubt.empty()) options.reader.depth = probe.depth;
//
// The file is only read, and never all of a large one: what fits the time.
// Errors: the reader's; ResourceExhausted; Cancelled; InvalidArgument (a time
// that is not a number, not above 0, or over an hour).
#ifndef COLDSTREAM_SCHEDULER_DISK_PROBE_H_
#define COLDSTREAM_SCHEDULER_DISK_PROBE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/file.h"
#include "io/reader.h"

namespace coldstream {

enum class ProbeBuffers {
  kSlots,       // on 2 MiB pages, registered with the kernel where allowed
  kPlain,       // on 2 MiB pages, not registered
  kSmallPages,  // on 4 KiB pages, not registered
};
const char* ProbeBuffersName(ProbeBuffers buffers);

struct DiskPoint {
  uint64_t chunk_bytes = 0;
  int depth = 0;
  ProbeBuffers buffers = ProbeBuffers::kSlots;

  double bytes_per_second = 0;  // the median of the slices
  int slices = 0;
  uint64_t bytes = 0;  // of all slices
  double seconds = 0;
  bool registered = false;

  uint64_t bytes_in_flight() const {
    return chunk_bytes * static_cast<uint64_t>(depth);
  }
};

struct DiskProbeOptions {
  double seconds = 1.5;                        // for all of it, about
  uint64_t memory_bytes = uint64_t{64} << 20;  // of the slots; at least 8 MiB
  // Measures plain buffers and small pages beside the slots; twice the memory.
  bool compare_buffers = false;
  // Backend, threads and wrap_backend; chunk and depth are the probe's.
  ReaderOptions reader = {};
  // Ends the probe with Cancelled between two slices. Must outlive the call.
  const std::atomic<bool>* cancel = nullptr;
};

struct DiskProbe {
  double bytes_per_second = 0;  // of the disk: mean of the good settings
  uint64_t chunk_bytes = 0;     // chosen; the reader's default if in doubt
  int depth = 0;                // likewise
  bool direct = false;          // past the page cache
  bool registered = false;      // the slots could be registered
  std::string backend;          // "uring" or "pread"
  // Why the figures say little about the disk; empty if they are good.
  std::string doubt;
  std::vector<DiskPoint> points;  // what was measured, slots first
};

StatusOr<DiskProbe> ProbeDisk(const std::shared_ptr<File>& file,
                              const DiskProbeOptions& options);

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_DISK_PROBE_H_
