#include "scheduler/split_model.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/check.h"
#include "scheduler/upload_model.h"

namespace coldstream {
namespace {

// Weights wait for memory with one token, for arithmetic with many; if that is
// known.
double ComputeSeconds(double bytes, int64_t tokens, double bytes_per_second,
                      double token_bytes_per_second) {
  const double arithmetic =
      token_bytes_per_second > 0
          ? static_cast<double>(tokens) / token_bytes_per_second
          : 0;
  return bytes * std::max(1 / bytes_per_second, arithmetic);
}

}  // namespace

PassPrediction PredictSplitPass(const SplitPassShape& shape) {
  const SplitRates& rates = shape.rates;
  CHECK(rates.known());
  std::vector<UnitCost> costs;
  std::vector<bool> on_cpu;
  for (size_t i = 0; i < shape.units.size(); ++i) {
    const WeightUnit& unit = shape.units[i];
    on_cpu.push_back(shape.placement.OnCpu(static_cast<int>(i), shape.phase));
    const auto bytes = static_cast<double>(unit.weight_bytes());
    const double seconds =
        on_cpu.back()
            ? ComputeSeconds(bytes, shape.tokens, rates.cpu, rates.cpu_tokens)
            : ComputeSeconds(bytes, shape.tokens, rates.device,
                             rates.device_tokens);
    costs.push_back(
        {.read_bytes = unit.read_bytes, .compute_seconds = seconds});
  }
  const double crossing_bytes = static_cast<double>(shape.tokens) *
                                static_cast<double>(shape.hidden) *
                                sizeof(float);
  return PredictUploadPass({.units = costs,
                            .on_device = shape.vram.resident,
                            .in_host = shape.host.resident,
                            .slots = std::max(shape.vram.slot_count, 1),
                            .staging_buffers = shape.staging_buffers,
                            .disk_bytes_per_second = rates.disk,
                            .upload_bytes_per_second = rates.upload,
                            .on_cpu = &on_cpu,
                            .crossing_seconds = rates.crossing_seconds +
                                                crossing_bytes / rates.upload});
}

int64_t BestCount(int64_t most, absl::FunctionRef<double(int64_t)> seconds) {
  constexpr int64_t kFirstSteps = 8;
  std::map<int64_t, double> known;
  const auto ask = [&](int64_t count) {
    const auto [at, added] = known.try_emplace(count, 0.0);
    if (added) at->second = seconds(count);
    return at->second;
  };
  int64_t best = 0;
  const auto consider = [&](int64_t count) {
    if (count < 0 || count > most) return;
    const double taken = ask(count), least = ask(best);
    if (taken < least || (taken == least && count < best)) best = count;
  };
  int64_t step = std::max<int64_t>(1, most / kFirstSteps);
  for (int64_t count = 0; count <= most; count += step) consider(count);
  consider(most);
  while (step > 1) {
    step = (step + 1) / 2;
    const int64_t middle = best;
    consider(middle - step);
    consider(middle + step);
  }
  return ask(best) < kShowingGain * ask(0) ? best : 0;
}

}  // namespace coldstream
