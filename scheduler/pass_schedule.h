// The order in which one pass uses the units, cut into stages.
//
// A stage is a run of consecutive units of which only the first may have to be
// read first. Units that are in memory thus ride along with the cold one before
// them: they need no slot, and the slot of that one is free again, and being
// filled, while they are computed. With everything resident a pass is one stage
// that reads nothing.
#ifndef COLDSTREAM_SCHEDULER_PASS_SCHEDULE_H_
#define COLDSTREAM_SCHEDULER_PASS_SCHEDULE_H_

#include <vector>

namespace coldstream {

struct Stage {
  int begin = 0;  // units [begin, end), in order
  int end = 0;
  bool load = false;  // unit `begin` is read before the stage runs

  int loaded_unit() const { return load ? begin : -1; }
};

// Stages of a pass over units 0..needs_load.size()-1; needs_load[u]: unit u is
// not in memory when the pass comes to it.
std::vector<Stage> MakeStages(const std::vector<bool>& needs_load);

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_PASS_SCHEDULE_H_
