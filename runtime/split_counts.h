// Which halves of layers the CPU computes beside a device, as counts and as the
// units they are.
//
// The CPU's layers are the first ones, because a device keeps the last: their
// attention and FFN are computed on the CPU, and their part of the KV cache is
// in host memory. Beside them it computes FFNs of later layers, spread evenly,
// so that copies of other units to the device go on in between.
#ifndef COLDSTREAM_RUNTIME_SPLIT_COUNTS_H_
#define COLDSTREAM_RUNTIME_SPLIT_COUNTS_H_

#include <cstdint>

#include "base/status.h"
#include "graphs/weight_map.h"
#include "runtime/engine.h"
#include "runtime/split_choice.h"
#include "scheduler/placement.h"

namespace coldstream {

// What the options say; what they leave open is 0, but for ffn_prefill, which
// then is as ffn. Errors: InvalidArgument (a negative count; gpu_layers and
// cpu_layers that do not agree).
StatusOr<SplitChoice> AskedSplit(const EngineOptions& options,
                                 int64_t layer_count);

// The options that ask for `counts`.
void SetSplit(const SplitCounts& counts, int64_t layer_count,
              EngineOptions* options);

// The units behind the counts; empty if there are none.
Placement PlaceHalves(const WeightMap& weights, int64_t layer_count,
                      const SplitCounts& counts);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_SPLIT_COUNTS_H_
