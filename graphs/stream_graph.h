// The one flow graph that runs a model's passes while its weights stream in.
//
//  [plan] -> [admit: join with a free slot] -> [read: async] -> [upload] ->
//                 ^
//                 |    [order] -> [run] --+
//                 +--- slot goes home <---+
//
// plan    names the next stage, running past the end of a pass, so that the
//         first cold units of the next pass load while this one ends;
// admit   reserves a free slot: the only back-pressure there is;
// read    asks the Reader to fill the slot (or, the first time, a resident
//         unit's own place) and goes on when it reports;
// upload  only with a device that has memory of its own: queues the copy of
// what
//         was read, to the slot, on the copy stream (scheduler/uploader.h);
// order   puts stages back in sequence (reads may overtake one another);
// run     computes the stage's units, one stage at a time, and sends the slot
//         home as soon as the unit in it is done with, so that it fills again
//         while the resident units behind it are computed.
//
// Units that the CPU computes beside a device (scheduler/placement.h) are read
// once, to their place in host memory, and uploaded in no pass of that phase.
//
// Errors travel as a Status in the message. The first one wins, later stages
// pass through idle, all slots come home, the graph drains and Run returns it.
#ifndef COLDSTREAM_GRAPHS_STREAM_GRAPH_H_
#define COLDSTREAM_GRAPHS_STREAM_GRAPH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/parallel.h"
#include "base/status.h"
#include "base/trace.h"
#include "io/reader.h"
#include "scheduler/placement.h"
#include "scheduler/uploader.h"
#include "scheduler/weight_store.h"

namespace coldstream {

// What is computed. Called from threads of the arena, one call at a time, in
// order; a returned error ends the run.
class PassRunner {
 public:
  virtual ~PassRunner() = default;
  virtual Status BeginPass(int64_t pass) = 0;
  // Which kind of pass it will be. Asked ahead of time, from any thread; always
  // the same answer.
  virtual Phase PhaseOf(int64_t) const { return Phase::kDecode; }
  // `weights`: the unit's buffer where the unit is computed, valid during the
  // call.
  virtual Status RunUnit(int unit, const std::byte* weights) = 0;
  // Waits for what RunUnit has queued. The weights of every unit may change
  // once it returns.
  virtual Status FinishPass(int64_t) { return absl::OkStatus(); }
  // Takes the results. True: another pass follows.
  virtual StatusOr<bool> EndPass(int64_t pass) = 0;
};

struct StreamStats {
  int64_t passes = 0;          // finished
  int64_t units = 0;           // run
  double run_seconds = 0;      // inside Run, in all
  double compute_seconds = 0;  // inside PassRunner
  // Between stages: weights were not there yet. With an uploader, what the
  // compute stream stood still for them; compute_seconds is the rest of a pass.
  double stall_seconds = 0;
};

class StreamGraph {
 public:
  // What a graph works with; all of it must outlive the graph.
  struct Parts {
    Parallel* parallel = nullptr;
    Reader* reader = nullptr;
    WeightStore* store = nullptr;
    int prefetch_depth = 1;  // stages between admit and their slot's return
    // Null where device memory is host memory: reads then go to the slots. Else
    // run only queues work, and slots go home when it is queued.
    Uploader* uploader = nullptr;
    TraceSink* trace = nullptr;  // reads, stalls and counters; may be null
  };
  explicit StreamGraph(const Parts& parts) : parts_(parts) {}

  // Runs passes until EndPass says false, `max_passes` are done, something
  // fails, or *cancel becomes true (Cancelled). May be called again afterwards,
  // whatever the outcome. Not thread-safe.
  Status Run(PassRunner* runner, int64_t max_passes,
             const std::atomic<bool>* cancel);

  // Of all runs so far; while one is under way, up to its latest stage. Any
  // thread.
  StreamStats stats() const;

 private:
  // What stats() is made of, written by the run node alone.
  struct Tally {
    std::atomic<int64_t> passes{0};
    std::atomic<int64_t> units{0};
    std::atomic<int64_t> run_ns{0};
    std::atomic<int64_t> compute_ns{0};
    std::atomic<int64_t> stall_ns{0};
  };
  class RunState;

  const Parts parts_;
  Tally tally_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_STREAM_GRAPH_H_
