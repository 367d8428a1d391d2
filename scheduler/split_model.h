// What a pass takes where the CPU computes some units beside a device, and how
// many it should compute.
//
//   const int64_t ffn = BestCount(layers, [&](int64_t count) {
//     return PredictSplitPass(...).seconds;   // of a plan for that many
//   });
//
// A unit in host memory can be copied to the device or computed where it is.
// The CPU reads its memory faster than a link copies from it, and the link can
// copy other units meanwhile, which is why the best share lies between none and
// all. With many tokens a device's arithmetic is worth the copy: then it is
// none.
#ifndef COLDSTREAM_SCHEDULER_SPLIT_MODEL_H_
#define COLDSTREAM_SCHEDULER_SPLIT_MODEL_H_

#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "scheduler/cost_model.h"
#include "scheduler/memory_plan.h"
#include "scheduler/placement.h"
#include "scheduler/split_rates.h"
#include "scheduler/weight_unit.h"

namespace coldstream {

struct SplitPassShape {
  std::span<const WeightUnit> units;
  const MemoryPlan& vram;
  const MemoryPlan& host;
  const Placement& placement;
  Phase phase = Phase::kDecode;
  int64_t tokens = 1;
  int64_t hidden = 0;  // floats of a token that cross
  int staging_buffers = 1;
  SplitRates rates;  // known; the disk's too if the plan reads
};

// In the steady state.
PassPrediction PredictSplitPass(const SplitPassShape& shape);

// A prediction below this share of another shows a gain that such predictions
// are good for.
inline constexpr double kShowingGain = 0.98;

// The count in 0..most with the least `seconds`, which may be infinity (that
// many cannot be). Exact where the curve has one valley; asks for few counts.
// 0 where the gain over 0 does not show.
int64_t BestCount(int64_t most, absl::FunctionRef<double(int64_t)> seconds);

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_SPLIT_MODEL_H_
