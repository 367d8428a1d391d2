// The search for the best stream settings, apart from what measures them.
//
// One axis after the other, from a start: all values of the axis race, the best
// becomes the new place, until a round changes nothing. In a race the points
// take turns, forwards and then backwards, so that a drifting machine favours
// none, and a point whose upper estimate stays below the best is dropped. Then
// everything is made smaller while it costs less than 2 %: the choice is the
// smallest setting (bytes of memory, then prefetch depth, I/O depth, chunk)
// within 2 % of the best, by a last race of those in question.
//
//   const auto result = Tune(space, start, {}, measure);
//   result->curve[result->chosen].point
//
// Pure: no clock, no randomness; the same samples give the same answer.
#ifndef COLDSTREAM_SCHEDULER_TUNER_H_
#define COLDSTREAM_SCHEDULER_TUNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "io/file.h"
#include "io/reader.h"

namespace coldstream {

struct TuneMode {
  IoBackendKind backend = IoBackendKind::kAuto;
  DirectMode direct = DirectMode::kAuto;
  // Measured with the choice for comparison, never chosen: a warm page cache
  // is fast but no property of the disk, and lies outside the cap.
  bool shown_only = false;
};

struct TunePoint {
  int prefetch_depth = 0;
  int io_depth = 0;
  uint64_t chunk_bytes = 0;
  size_t mode = 0;  // index into TuneSpace::modes

  bool operator==(const TunePoint& other) const {
    return prefetch_depth == other.prefetch_depth &&
           io_depth == other.io_depth && chunk_bytes == other.chunk_bytes &&
           mode == other.mode;
  }
};

// Values of each axis, smallest first, none empty. An axis of one value is
// fixed. modes: the preferred one first, not shown_only.
struct TuneSpace {
  std::vector<int> prefetch_depths;
  std::vector<int> io_depths;
  std::vector<uint64_t> chunks;
  std::vector<TuneMode> modes;
};

struct TuneSample {
  int passes = 0;
  double seconds = 0;         // of these passes
  double cost_seconds = 0;    // set-up included
  uint64_t bytes = 0;         // from disk
  uint64_t memory_bytes = 0;  // what the setting takes
};

// Runs up to `passes` passes; may end earlier, with at least one, once it is
// clear that their rate stays below `give_up_below` passes a second.
// ResourceExhausted, InvalidArgument and Unavailable say that the point cannot
// be had: it is left out. Any other error ends the search.
using TuneMeasure = std::function<StatusOr<TuneSample>(
    const TunePoint& point, int passes, double give_up_below)>;

struct TuneOptions {
  int passes = 2;      // of a visit
  double seconds = 0;  // in all, by cost_seconds; 0: no bound
};

struct TuneEntry {
  TunePoint point;
  Status status = {};  // why it could not be had, or OK
  int passes = 0;
  double seconds = 0;
  uint64_t bytes = 0;
  uint64_t memory_bytes = 0;
  bool dropped = false;  // lost a race early

  double passes_per_second() const {
    return seconds > 0 ? passes / seconds : 0;
  }
  double bytes_per_second() const {
    return seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
  }
};

struct TuneResult {
  std::vector<TuneEntry> curve;  // in the order first measured
  size_t chosen = 0;             // index into curve
  double noise = 0;              // spread of a visit, relative
  bool out_of_time = false;      // the search was cut short
};

// `start` lies in the space. Errors: the measurement's; that of the start if no
// point could be had.
StatusOr<TuneResult> Tune(const TuneSpace& space, const TunePoint& start,
                          const TuneOptions& options,
                          const TuneMeasure& measure);

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_TUNER_H_
