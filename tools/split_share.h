// What of a pass is the CPU's beside a device, in words and figures.
#ifndef COLDSTREAM_TOOLS_SPLIT_SHARE_H_
#define COLDSTREAM_TOOLS_SPLIT_SHARE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "runtime/engine_plan.h"
#include "runtime/model.h"
#include "runtime/split_choice.h"
#include "scheduler/placement.h"
#include "scheduler/split_rates.h"

namespace coldstream {

struct SplitShare {
  int64_t cpu_units = 0;
  uint64_t cpu_bytes = 0;     // of weights
  uint64_t upload_bytes = 0;  // copied to the device
  uint64_t disk_bytes = 0;    // as read
};

// Of a pass in the steady state; zeros without a device.
SplitShare ShareOf(const Model& model, const EnginePlan& plan, Phase phase);

struct SplitSummary {
  int64_t layers = 0;  // of the model
  SplitChoice choice = {};
  SplitShare decode = {};
  SplitShare prefill = {};
  SplitRates rates = {};  // that it was decided by, if known
};

// nullopt without a device.
std::optional<SplitSummary> SummarizeSplit(const Model& model,
                                           const EnginePlan& plan);

// What was not known is null.
nlohmann::ordered_json SplitJson(const std::optional<SplitSummary>& split);

// "none of the layers (default), and of the FFNs of the others 12 (chosen) in
// generation, none (chosen) in prompts": what the CPU computes.
std::string SplitText(const SplitChoice& choice);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_SPLIT_SHARE_H_
