// What a model will do under a budget, before it is run: memory, homes, bytes
// and the predicted time of a pass, for one token and for a batch of the
// prompt.
#ifndef COLDSTREAM_TOOLS_FORECAST_H_
#define COLDSTREAM_TOOLS_FORECAST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/compute_rates.h"
#include "runtime/engine_plan.h"
#include "runtime/model.h"
#include "scheduler/cost_model.h"
#include "tools/split_share.h"

namespace coldstream {

// What weights come through on their way; bytes per second, 0: not known.
struct LinkRates {
  double disk = 0;
  double upload = 0;           // to a device with memory of its own
  Contention contention = {};  // of the disk and the CPU
};

// By unit, what a pass takes: where it is computed, and beside a device on the
// CPU (empty: not known).
struct SideCosts {
  std::vector<UnitCost> main;
  std::vector<UnitCost> cpu = {};
};

struct MachineRates {
  const ComputeRates* compute = nullptr;  // of the CPU
  const ComputeRates* device = nullptr;   // null: not measured
  // Where it was not: of the device's memory, which is what a token takes.
  double device_memory = 0;
  LinkRates links;
};

// A pass over the weights for `tokens` tokens.
struct PassForecast {
  int64_t tokens = 0;
  SplitShare share = {};  // beside a device
  // Unset where a rate that is needed is not known.
  std::optional<PassPrediction> time;

  std::optional<double> tokens_per_second() const {
    if (!time) return std::nullopt;
    return static_cast<double>(tokens) / time->seconds;
  }
};

// What would help generation most.
struct NextSpend {
  std::string what;  // "+1.00 GiB of RAM", "a faster disk, or ..."
  double now_tokens_per_second = 0;
  double then_tokens_per_second = 0;  // 0: not predicted
};

struct Forecast {
  EnginePlan plan;
  // Weights of a pass by where they are when it comes to them.
  uint64_t disk_bytes = 0;  // as read
  uint64_t ram_bytes = 0;
  uint64_t vram_bytes = 0;
  PassForecast decode;
  PassForecast prefill;
  std::optional<NextSpend> next;  // unset where decode.time is
};

PassForecast ForecastPass(const Model& model, const EnginePlan& plan,
                          const MachineRates& rates, const PassLoad& load);

// Beside a device the plan is the one that these rates make best. Errors: as
// PlanEngine.
StatusOr<Forecast> MakeForecast(const Model& model,
                                const EngineOptions& options,
                                const MachineRates& rates);

// More memory if that is predicted to bring 1 % or more (of the two a device
// has, the one that brings more), else what the binding link asks for. `costs`:
// of a pass for one token. The rates that the plan needs must be known.
NextSpend FindNextSpend(const Model& model, const EnginePlan& plan,
                        const SideCosts& costs, const LinkRates& links);

// "+1 GiB of RAM: 1.31 -> 1.48 tok/s".
std::string NextSpendText(const NextSpend& spend);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_FORECAST_H_
