// The one flow graph that runs a model's passes while its weights stream in.
//
//  [plan] -> [admit: join with a free slot] -> [read: async] -> [order] ->
//  [run]
//                       ^                                                    |
//                       +---------------- slot goes home <-------------------+
//
// plan    names the next stage, running past the end of a pass, so that the
//         first cold units of the next pass load while this one ends;
// admit   reserves a free slot: the only back-pressure there is;
// read    asks the Reader to fill the slot (or, the first time, a resident
//         unit's own place) and goes on when it reports;
// order   puts stages back in sequence (reads may overtake one another);
// run     computes the stage's units, one stage at a time.
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
#include "io/reader.h"
#include "scheduler/weight_store.h"

namespace coldstream {

// What is computed. Called from threads of the arena, one call at a time, in
// order; a returned error ends the run.
class PassRunner {
 public:
  virtual ~PassRunner() = default;
  virtual Status BeginPass(int64_t pass) = 0;
  // `weights`: the unit's buffer, valid during the call.
  virtual Status RunUnit(int unit, const std::byte* weights) = 0;
  // True: another pass follows.
  virtual StatusOr<bool> EndPass(int64_t pass) = 0;
};

struct StreamStats {
  int64_t passes = 0;          // finished
  double compute_seconds = 0;  // inside PassRunner
  double stall_seconds = 0;    // between stages: weights were not there yet
};

class StreamGraph {
 public:
  // All four must outlive the graph; `prefetch_depth` stages may be between
  // admit and the end of run at once.
  StreamGraph(Parallel* parallel, Reader* reader, WeightStore* store,
              int prefetch_depth);

  // Runs passes until EndPass says false, `max_passes` are done, something
  // fails, or *cancel becomes true (Cancelled). May be called again afterwards,
  // whatever the outcome. Not thread-safe.
  Status Run(PassRunner* runner, int64_t max_passes,
             const std::atomic<bool>* cancel);

  const StreamStats& stats() const { return stats_; }

 private:
  Parallel* parallel_;
  Reader* reader_;
  WeightStore* store_;
  int prefetch_depth_;
  StreamStats stats_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_STREAM_GRAPH_H_
