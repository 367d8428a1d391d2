// The rates by which an engine chooses what the CPU computes beside a device
// (EngineOptions::split_rates), from measured ones.
//
//   ASSIGN_OR_RETURN(options.split_rates,
//                    FindSplitRates(*model, options, plan, &profile));
#ifndef COLDSTREAM_RUNTIME_SPLIT_SETTINGS_H_
#define COLDSTREAM_RUNTIME_SPLIT_SETTINGS_H_

#include "base/status.h"
#include "runtime/compute_rates.h"
#include "runtime/engine.h"
#include "runtime/engine_plan.h"
#include "runtime/model.h"
#include "runtime/profile.h"
#include "scheduler/split_rates.h"

namespace coldstream {

// What both sides make of this model's layers: bytes by matrix type, summed.
// `upload` and `disk`: bytes per second.
SplitRates SplitRatesOf(const Model& model, const ComputeRates& cpu,
                        const ComputeRates& device, double upload, double disk);

// One side's: of one token (SplitRates::cpu, device) and of many.
double LayerRate(const Model& model, const ComputeRates& rates);
double LayerTokenRate(const Model& model, const ComputeRates& rates);

// For `options` and the plan without rates: those of the profile. Where a pass
// uploads enough for it to matter and memory allows, what is missing is
// measured (about two seconds) and put into the profile. Not known where
// nothing is uploaded, nothing is left open or something is missing; rates that
// the options have are theirs. Errors: the measurement's, but for a lack of
// memory.
StatusOr<SplitRates> FindSplitRates(const Model& model,
                                    const EngineOptions& options,
                                    const EnginePlan& plan, Profile* profile);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_SPLIT_SETTINGS_H_
