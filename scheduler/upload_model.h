// What a pass will take on a device with memory of its own.
//
// Three resources, each one thing at a time and in the order of the pass: the
// disk fills staging buffers, the link copies units from there or from their
// place in host memory to slots, the device computes. This plays passes through
// as graphs/stream_graph.h and scheduler/uploader.h queue them:
//
// - a read waits for a staging buffer, which comes home when it was copied, and
//   for a turn: no more stages are under way on the host than there are slots;
// - a copy waits for its bytes and for the last use of its slot;
// - the host queues a pass when the one before has ended;
// - a unit that the CPU computes needs no copy: the host waits until the device
//   has computed all before it, and queues nothing until it is done itself.
//   Reads and copies go on meanwhile.
//
// What the copies and the CPU take of each other's memory bandwidth is not in
// it.
#ifndef COLDSTREAM_SCHEDULER_UPLOAD_MODEL_H_
#define COLDSTREAM_SCHEDULER_UPLOAD_MODEL_H_

#include <span>
#include <vector>

#include "scheduler/cost_model.h"

namespace coldstream {

struct UploadPassShape {
  std::span<const UnitCost> units;     // read_bytes: also those of its copy
  const std::vector<bool>& on_device;  // by unit: neither read nor copied
  const std::vector<bool>& in_host;    // by unit: copied only
  int slots = 1;
  int staging_buffers = 1;
  // Above 0 unless no unit needs them.
  double disk_bytes_per_second = 0;
  double upload_bytes_per_second = 0;
  double seconds_between = 0;  // sampling, after the last unit
  // By unit, never the last: computed on the CPU, which takes its
  // compute_seconds there. Null: none.
  const std::vector<bool>* on_cpu = nullptr;
  double crossing_seconds = 0;  // of handing over, each time
};

// A pass in the steady state.
PassPrediction PredictUploadPass(const UploadPassShape& shape);

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_UPLOAD_MODEL_H_
