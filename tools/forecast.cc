#include "tools/forecast.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/byte_units.h"
#include "runtime/split_settings.h"
#include "scheduler/upload_model.h"
#include "tools/byte_size.h"

namespace coldstream {
namespace {

constexpr double kWorthwhile = 1.01;

int StagingBuffers(const Model& model, const EnginePlan& plan) {
  const uint64_t buffer = StagingBufferBytes(model.weights().units);
  return static_cast<int>(
      std::max<uint64_t>(plan.memory.fixed.staging / buffer, 1));
}

// Of a pass of `tokens` tokens; nullopt where a rate that is needed is not
// known.
std::optional<PassPrediction> PredictIfKnown(const Model& model,
                                             const EnginePlan& plan,
                                             const SideCosts& costs,
                                             const LinkRates& links,
                                             int64_t tokens) {
  const MemoryPlan& memory = plan.memory;
  if (!plan.vram) {
    if (memory.pass_read_bytes > 0 && links.disk <= 0) return std::nullopt;
    return PredictPass({.units = costs.main,
                        .resident = memory.resident,
                        .slots = std::max(memory.slot_count, 1),
                        .disk_bytes_per_second = links.disk,
                        .contention = links.contention});
  }
  const Phase phase = PhaseOf(tokens);
  const SplitShare share = ShareOf(model, plan, phase);
  if (share.disk_bytes > 0 && links.disk <= 0) return std::nullopt;
  if (share.upload_bytes + share.cpu_bytes > 0 && links.upload <= 0)
    return std::nullopt;
  if (share.cpu_units > 0 && costs.cpu.empty()) return std::nullopt;
  std::vector<UnitCost> mixed = costs.main;
  std::vector<bool> on_cpu(mixed.size());
  for (size_t i = 0; i < mixed.size(); ++i) {
    on_cpu[i] = plan.placement.OnCpu(static_cast<int>(i), phase);
    if (on_cpu[i]) mixed[i] = costs.cpu[i];
  }
  const double crossing_bytes = static_cast<double>(tokens) *
                                static_cast<double>(model.config().hidden) *
                                sizeof(float);
  const double crossing_seconds =
      share.cpu_units > 0 ? plan.options.split_rates.crossing_seconds +
                                crossing_bytes / links.upload
                          : 0;
  return PredictUploadPass({.units = mixed,
                            .on_device = plan.vram->resident,
                            .in_host = memory.resident,
                            .slots = std::max(plan.vram->slot_count, 1),
                            .staging_buffers = StagingBuffers(model, plan),
                            .disk_bytes_per_second = links.disk,
                            .upload_bytes_per_second = links.upload,
                            .on_cpu = &on_cpu,
                            .crossing_seconds = crossing_seconds});
}

// nullopt where it is not known.
std::optional<SideCosts> CostsOf(const Model& model, const EnginePlan& plan,
                                 const MachineRates& rates,
                                 const PassLoad& load) {
  if (!plan.vram)
    return SideCosts{.main = UnitCosts(model, *rates.compute, load)};
  SideCosts costs;
  costs.cpu = UnitCosts(model, *rates.compute, load);
  if (rates.device != nullptr) {
    costs.main = UnitCosts(model, *rates.device, load);
    return costs;
  }
  // The arithmetic of many tokens is another matter.
  if (load.tokens > 1 || rates.device_memory <= 0) return std::nullopt;
  for (const WeightUnit& unit : model.weights().units) {
    costs.main.push_back(
        {unit.read_bytes,
         static_cast<double>(unit.weight_bytes()) / rates.device_memory});
  }
  return costs;
}

// What a plan's split is chosen by.
SplitRates RatesOfSplit(const Model& model, const MachineRates& rates) {
  if (rates.device != nullptr) {
    return SplitRatesOf(model, *rates.compute, *rates.device,
                        rates.links.upload, rates.links.disk);
  }
  SplitRates split;
  split.upload = rates.links.upload;
  split.disk = rates.links.disk;
  split.cpu = LayerRate(model, *rates.compute);
  split.cpu_tokens = LayerTokenRate(model, *rates.compute);
  split.device = rates.device_memory;
  return split;
}

void CountBytes(const Model& model, Forecast* forecast) {
  const auto& units = model.weights().units;
  for (size_t i = 0; i < units.size(); ++i) {
    switch (HomeOf(forecast->plan, i)) {
      case Home::kVram:
        forecast->vram_bytes += units[i].weight_bytes();
        break;
      case Home::kRam:
        forecast->ram_bytes += units[i].weight_bytes();
        break;
      case Home::kDisk:
        break;  // as read, the plan has it
    }
  }
  forecast->disk_bytes = forecast->plan.memory.pass_read_bytes;
}

// A step of memory that shows: 1 GiB, less for a small model.
uint64_t MemoryStep(uint64_t budget, uint64_t wanting) {
  uint64_t step = kGiB;
  while (step > budget / 2 && step > uint64_t{16} << 20) step /= 2;
  return std::min(step, std::max(wanting, uint64_t{1} << 20));
}

// A step more of the memory that `budget` is: what it is called and, if that
// can be planned and predicted, what a pass then takes. `wanting`: the bytes of
// a pass that are not there.
struct Step {
  std::string what;
  double seconds = 0;
};
std::optional<Step> MoreMemory(const Model& model, const EnginePlan& plan,
                               const SideCosts& costs, const LinkRates& links,
                               uint64_t EngineOptions::*budget,
                               uint64_t wanting, const char* name) {
  if (wanting == 0) return std::nullopt;
  EngineOptions more = plan.options;
  if (plan.split.ffn != SplitSource::kForced) more.cpu_ffn.reset();
  if (plan.split.ffn_prefill != SplitSource::kForced)
    more.cpu_ffn_prefill.reset();
  const uint64_t step = MemoryStep(plan.options.*budget, wanting);
  more.*budget += step;
  const StatusOr<EnginePlan> then_plan = PlanEngine(model, more);
  if (!then_plan.ok()) return std::nullopt;
  const auto then = PredictIfKnown(model, *then_plan, costs, links, 1);
  if (!then) return std::nullopt;
  return Step{absl::StrFormat("+%s of %s", FormatByteSize(step), name),
              then->seconds};
}

const char* AdviceOn(Link link, bool device) {
  switch (link) {
    case Link::kDisk:
      return "a faster disk, or a smaller weight type";
    case Link::kUpload:
      return "a faster link to the device, or a smaller weight type";
    case Link::kCompute:
      break;
  }
  return device ? "a faster device, or a smaller weight type"
                : "more threads or a faster processor, or a smaller weight "
                  "type";
}

}  // namespace

PassForecast ForecastPass(const Model& model, const EnginePlan& plan,
                          const MachineRates& rates, const PassLoad& load) {
  PassForecast pass;
  pass.tokens = load.tokens;
  pass.share = ShareOf(model, plan, PhaseOf(load.tokens));
  if (const auto costs = CostsOf(model, plan, rates, load))
    pass.time = PredictIfKnown(model, plan, *costs, rates.links, load.tokens);
  return pass;
}

StatusOr<Forecast> MakeForecast(const Model& model,
                                const EngineOptions& options,
                                const MachineRates& rates) {
  Forecast forecast;
  EngineOptions rated = options;
  if (options.gpu != nullptr || options.vram_bytes > 0)
    rated.split_rates = RatesOfSplit(model, rates);
  ASSIGN_OR_RETURN(forecast.plan, PlanEngine(model, rated));
  const EnginePlan& plan = forecast.plan;
  CountBytes(model, &forecast);
  forecast.decode = ForecastPass(model, plan, rates, PassLoad{});
  forecast.prefill =
      ForecastPass(model, plan, rates, {.tokens = plan.options.batch_tokens});
  if (forecast.decode.time) {
    forecast.next = FindNextSpend(
        model, plan, *CostsOf(model, plan, rates, PassLoad{}), rates.links);
  }
  return forecast;
}

NextSpend FindNextSpend(const Model& model, const EnginePlan& plan,
                        const SideCosts& costs, const LinkRates& links) {
  const PassPrediction now = *PredictIfKnown(model, plan, costs, links, 1);
  NextSpend spend;
  spend.now_tokens_per_second = 1 / now.seconds;
  std::optional<Step> best =
      MoreMemory(model, plan, costs, links, &EngineOptions::ram_bytes,
                 plan.memory.pass_read_bytes, "RAM");
  if (plan.vram) {
    const SplitShare share = ShareOf(model, plan, Phase::kDecode);
    const std::optional<Step> vram =
        MoreMemory(model, plan, costs, links, &EngineOptions::vram_bytes,
                   share.upload_bytes + share.cpu_bytes, "VRAM");
    if (vram && (!best || vram->seconds < best->seconds)) best = vram;
  }
  if (best && now.seconds > kWorthwhile * best->seconds) {
    spend.what = best->what;
    spend.then_tokens_per_second = 1 / best->seconds;
    return spend;
  }
  spend.what = AdviceOn(now.binding(), plan.vram.has_value());
  return spend;
}

std::string NextSpendText(const NextSpend& spend) {
  if (spend.then_tokens_per_second == 0) return spend.what;
  return absl::StrFormat("%s: %.2f -> %.2f tok/s", spend.what,
                         spend.now_tokens_per_second,
                         spend.then_tokens_per_second);
}

}  // namespace coldstream
