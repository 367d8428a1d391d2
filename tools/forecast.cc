#include "tools/forecast.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "tools/byte_size.h"

namespace coldstream {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr double kWorthwhile = 1.01;

// nullopt where a rate that is needed is not known.
std::optional<PassPrediction> PredictIfKnown(const MemoryPlan& plan,
                                             std::span<const UnitCost> costs,
                                             double disk_bytes_per_second,
                                             const Contention& contention) {
  if (plan.pass_read_bytes > 0 && disk_bytes_per_second <= 0)
    return std::nullopt;
  return PredictPass({.units = costs,
                      .resident = plan.resident,
                      .slots = std::max(plan.slot_count, 1),
                      .disk_bytes_per_second = disk_bytes_per_second,
                      .contention = contention});
}

uint64_t ResidentWeightBytes(const Model& model, const MemoryPlan& plan) {
  uint64_t bytes = 0;
  const auto& units = model.weights().units;
  for (size_t i = 0; i < units.size(); ++i)
    if (plan.resident[i]) bytes += units[i].weight_bytes();
  return bytes;
}

// A step of memory that shows: 1 GiB, less for a small model.
uint64_t MemoryStep(const MemoryPlan& plan) {
  uint64_t step = kGiB;
  while (step > plan.budget / 2 && step > uint64_t{16} << 20) step /= 2;
  return std::min(step, std::max(plan.pass_read_bytes, uint64_t{1} << 20));
}

}  // namespace

StatusOr<Forecast> MakeForecast(const Model& model,
                                const EngineOptions& options,
                                const MachineRates& rates) {
  Forecast forecast;
  ASSIGN_OR_RETURN(forecast.plan, PlanEngine(model, options));
  const MemoryPlan& memory = forecast.plan.memory;
  forecast.disk_bytes = memory.pass_read_bytes;
  forecast.ram_bytes = ResidentWeightBytes(model, memory);
  const double disk = rates.disk_bytes_per_second;
  const Contention& contention = rates.contention;
  const std::vector<UnitCost> one =
      UnitCosts(model, *rates.compute, {.tokens = 1});
  forecast.decode = {1, PredictIfKnown(memory, one, disk, contention)};
  const int64_t batch = forecast.plan.options.batch_tokens;
  const std::vector<UnitCost> many =
      UnitCosts(model, *rates.compute, {.tokens = batch});
  forecast.prefill = {batch, PredictIfKnown(memory, many, disk, contention)};
  if (forecast.decode.time)
    forecast.next = FindNextSpend(model, forecast.plan, one, disk, contention);
  return forecast;
}

NextSpend FindNextSpend(const Model& model, const EnginePlan& plan,
                        std::span<const UnitCost> costs,
                        double disk_bytes_per_second,
                        const Contention& contention) {
  const PassPrediction now =
      *PredictIfKnown(plan.memory, costs, disk_bytes_per_second, contention);
  NextSpend spend;
  spend.now_tokens_per_second = 1 / now.seconds;
  if (plan.memory.pass_read_bytes > 0) {
    EngineOptions more = plan.options;
    const uint64_t step = MemoryStep(plan.memory);
    more.ram_bytes += step;
    const StatusOr<EnginePlan> then_plan = PlanEngine(model, more);
    if (then_plan.ok()) {
      const PassPrediction then = *PredictIfKnown(
          then_plan->memory, costs, disk_bytes_per_second, contention);
      if (now.seconds > kWorthwhile * then.seconds) {
        spend.what = absl::StrFormat("+%s of RAM", FormatByteSize(step));
        spend.then_tokens_per_second = 1 / then.seconds;
        return spend;
      }
    }
  }
  spend.what = now.binding() == Link::kDisk
                   ? "a faster disk, or a smaller weight type"
                   : "more threads or a faster processor, or a smaller weight "
                     "type";
  return spend;
}

std::string NextSpendText(const NextSpend& spend) {
  if (spend.then_tokens_per_second == 0) return spend.what;
  return absl::StrFormat("%s: %.2f -> %.2f tok/s", spend.what,
                         spend.now_tokens_per_second,
                         spend.then_tokens_per_second);
}

}  // namespace coldstream
