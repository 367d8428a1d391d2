// How long a pass takes, from what its units weigh and what the links carry.
//
// Two resources: the disk, which reads cold units in order at a constant rate,
// and the computation, which runs units in order. They overlap as far as slots
// allow, so neither the sum nor the larger of the two is the answer: this plays
// the passes through, stage by stage, as graphs/stream_graph.h would.
//
// A device with memory of its own has a third link: scheduler/upload_model.h.
//
// The bound is the largest of the busy times: no schedule can do better
// (DESIGN.md, section 4, with W / B_dram as computation).
#ifndef COLDSTREAM_SCHEDULER_COST_MODEL_H_
#define COLDSTREAM_SCHEDULER_COST_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace coldstream {

struct UnitCost {
  uint64_t read_bytes = 0;     // where it is cold
  double compute_seconds = 0;  // for all tokens of the pass
};

enum class Link { kDisk, kUpload, kCompute };
const char* LinkName(Link link);  // "disk", "upload", "compute"

struct PassPrediction {
  double seconds = 0;          // of a pass among many
  double disk_seconds = 0;     // the disk is busy
  double compute_seconds = 0;  // the computation is busy
  double upload_seconds = 0;   // the link to a device is busy
  double cpu_seconds = 0;      // of compute_seconds, on the CPU beside it
  Link binding() const {
    if (disk_seconds > compute_seconds && disk_seconds > upload_seconds)
      return Link::kDisk;
    return upload_seconds > compute_seconds ? Link::kUpload : Link::kCompute;
  }
  double bound_seconds() const {
    return std::max({disk_seconds, upload_seconds, compute_seconds});
  }
};

// How much longer each takes while the other is busy; at least 1.
struct Contention {
  double compute = 1;
  double disk = 1;
};

struct PassShape {
  std::span<const UnitCost> units;
  const std::vector<bool>& resident;  // by unit
  int slots = 1;                      // of the prefetch ring
  double disk_bytes_per_second = 0;   // above 0 unless all units are resident
  double seconds_between = 0;         // sampling, after the last unit
  Contention contention = {};
};

// A pass in the steady state: weights that are resident are there.
PassPrediction PredictPass(const PassShape& shape);

// The first pass, which reads the resident units too.
PassPrediction PredictFirstPass(const PassShape& shape);

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_COST_MODEL_H_
