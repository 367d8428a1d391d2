#include "runtime/device_plan.h"

#include <algorithm>
#include <limits>
#include <span>

#include "runtime/engine_memory.h"
#include "runtime/split_counts.h"
#include "scheduler/split_model.h"

namespace coldstream {
namespace {

// One slot being computed from, one being copied to: the first of these. Where
// the CPU takes turns with the device, more slots are copied to meanwhile.
constexpr int kDepths[] = {2, 4, 8, 16, 32};

// The plan if the CPU computes what `split` says.
StatusOr<EnginePlan> PlanSplit(const Model& model, const EngineOptions& options,
                               const SplitCounts& split) {
  const int64_t layers = model.config().layer_count();
  const auto& units = model.weights().units;
  EnginePlan plan{options, {}, {}};
  SetSplit(split, layers, &plan.options);
  plan.placement = PlaceHalves(model.weights(), layers, split);
  ASSIGN_OR_RETURN(
      plan.vram,
      PlanMemory(units, CountDeviceMemory(model, options, split),
                 options.vram_bytes, options.prefetch_depth, BudgetFlag::kVram,
                 DeviceRules(plan.placement, units.size())));
  ASSIGN_OR_RETURN(
      plan.memory,
      PlanHostMemory(units, *plan.vram, CountHostMemory(model, options, split),
                     options.ram_bytes, plan.placement));
  return plan;
}

// Of a pass of `tokens` tokens; infinity where there is no such plan, or it is
// not known what it takes.
double PredictSeconds(const Model& model, const EngineOptions& options,
                      const SplitCounts& split, int64_t tokens) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const StatusOr<EnginePlan> plan = PlanSplit(model, options, split);
  if (!plan.ok()) return kNever;
  const SplitRates& rates = options.split_rates;
  if (plan->memory.pass_read_bytes > 0 && rates.disk <= 0) return kNever;
  const auto& units = model.weights().units;
  const uint64_t staged =
      plan->memory.fixed.staging / StagingBufferBytes(units);
  return PredictSplitPass({.units = units,
                           .vram = *plan->vram,
                           .host = plan->memory,
                           .placement = plan->placement,
                           .phase = PhaseOf(tokens),
                           .tokens = tokens,
                           .hidden = model.config().hidden,
                           .staging_buffers = static_cast<int>(staged),
                           .rates = rates})
      .seconds;
}

// The best `count` of `split` in 0..most for passes of `tokens` tokens.
int64_t BestSplit(const Model& model, const EngineOptions& options,
                  SplitCounts split, int64_t SplitCounts::*count, int64_t most,
                  int64_t tokens) {
  return BestCount(most, [&](int64_t tried) {
    split.*count = tried;
    return PredictSeconds(model, options, split, tokens);
  });
}

// Fills in what was not asked for. `depths`: those to choose from.
void ChooseSplit(const Model& model, std::span<const int> depths,
                 const EngineOptions& asked, EngineOptions* options,
                 SplitChoice* choice) {
  SplitCounts* const split = &choice->counts;
  const StatusOr<EnginePlan> plan = PlanSplit(model, *options, *split);
  // Where nothing is copied there is nothing to gain; what cannot be planned
  // will be an error.
  if (!plan.ok() || plan->vram->pass_read_bytes == 0) return;
  const int64_t later = model.config().layer_count() - split->layers;
  double least = std::numeric_limits<double>::infinity();
  EngineOptions tried = *options;
  for (const int depth : depths) {
    tried.prefetch_depth = depth;
    SplitCounts with = *split;
    if (!asked.cpu_ffn)
      with.ffn = BestSplit(model, tried, with, &SplitCounts::ffn, later, 1);
    const double seconds = PredictSeconds(model, tried, with, 1);
    if (!(seconds < kShowingGain * least)) continue;
    least = seconds;
    options->prefetch_depth = depth;
    split->ffn = with.ffn;
  }
  if (!asked.cpu_ffn) choice->ffn = SplitSource::kChosen;
  if (asked.cpu_ffn_prefill) return;
  choice->ffn_prefill = SplitSource::kChosen;
  // A pass of many tokens, if there are any: of what is on the CPU already.
  split->ffn_prefill = split->ffn;
  if (PhaseOf(options->batch_tokens) == Phase::kPrefill)
    split->ffn_prefill =
        BestSplit(model, *options, *split, &SplitCounts::ffn_prefill,
                  split->ffn, options->batch_tokens);
}

}  // namespace

StatusOr<EnginePlan> PlanDevice(const Model& model,
                                const EngineOptions& options) {
  ASSIGN_OR_RETURN(SplitChoice split,
                   AskedSplit(options, model.config().layer_count()));
  EngineOptions filled = options;
  std::span<const int> depths(&options.prefetch_depth, 1);
  if (options.prefetch_depth == kAutoPrefetchDepth) {
    depths = kDepths;
    filled.prefetch_depth = depths.front();
  }
  if (options.split_rates.known())
    ChooseSplit(model, depths, options, &filled, &split);
  ASSIGN_OR_RETURN(EnginePlan plan, PlanSplit(model, filled, split.counts));
  plan.split = split;
  return plan;
}

}  // namespace coldstream
