// How a batch shares memory between keys and values and resident weights.
//
// Every request that is worked on at once takes cache away from the weights:
// more of them are read again for each pass, but a pass serves one request
// more. So the number of requests is chosen that is predicted to give most
// tokens a second: n / (time of a decode pass for n tokens, with the weights
// that stay beside n caches; tools/forecast.h). Where that cannot be predicted,
// or a pass brings in so little that it is not worth the measurements, the
// cache takes a third of what the fixed parts leave.
#ifndef COLDSTREAM_TOOLS_BATCH_MEMORY_H_
#define COLDSTREAM_TOOLS_BATCH_MEMORY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "tools/forecast.h"

namespace coldstream {

struct BatchDemand {
  int64_t sequences = 1;  // most that may be worked on at once
  // Of a request, prompt and answer, on average; 0: not known, the context.
  int64_t positions = 0;
};

struct BatchMemory {
  int64_t sequences = 0;  // that have room at once, of the demanded length
  int64_t kv_tokens = 0;
  uint64_t kv_bytes = 0;
  uint64_t resident_bytes = 0;  // of weights
  bool all_resident = false;
  double tokens_per_second = 0;  // generated; 0: not predicted
  // What the choice was between, by number of sequences.
  struct Point {
    int64_t sequences = 0;
    double tokens_per_second = 0;
  };
  std::vector<Point> others = {};
};

// `rates` is asked only if there is something to choose: it may take a second
// or two of measurements. Errors: PlanEngine's where not even one request has
// room; those of `rates`.
StatusOr<BatchMemory> ChooseBatchMemory(
    const Model& model, const EngineOptions& options, const BatchDemand& demand,
    const std::function<StatusOr<MachineRates>()>& rates);

// "keys and values of 24 requests of 310 positions: 1.20 GiB; 2.10 GiB of
// weights stay; predicted 8.1 tok/s (16: 7.4, 32: 7.9)".
std::string BatchMemoryText(const BatchMemory& memory);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_MEMORY_H_
