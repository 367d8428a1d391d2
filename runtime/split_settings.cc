#include "runtime/split_settings.h"

#include <cstdint>

#include "base/dtype.h"
#include "io/disk_identity.h"
#include "runtime/rate_finder.h"

namespace coldstream {
namespace {

// What measurements take on the device for a moment: weights of 256 MiB and
// their results.
constexpr uint64_t kDeviceMemory = uint64_t{384} << 20;

// Seconds that the layers' weights take with `tokens` tokens, and their bytes.
struct LayerTime {
  double bytes = 0;
  double seconds = 0;
};
LayerTime TimeOfLayers(const Model& model, const ComputeRates& rates,
                       int64_t tokens) {
  LayerTime time;
  for (const auto& unit : model.weights().matrices) {
    for (const MatrixRows& rows : unit) {
      if (rows.kind == MatrixKind::kHead) continue;  // never the CPU's
      const auto bytes = static_cast<double>(
          RowBytes(rows.weight.type, static_cast<uint64_t>(rows.weight.cols)) *
          static_cast<uint64_t>(rows.weight.rows));
      time.bytes += bytes;
      time.seconds += bytes * rates.WeightByte(rows.weight.type, tokens);
    }
  }
  return time;
}

MeasureRates WhatToMeasure(const EnginePlan& plan) {
  const bool room =
      HasRoomToMeasure(plan.memory) && plan.vram->budget >= kDeviceMemory;
  return room && plan.vram->pass_read_bytes >= kWorthMeasuring
             ? MeasureRates::kMissing
             : MeasureRates::kNone;
}

}  // namespace

double LayerRate(const Model& model, const ComputeRates& rates) {
  const LayerTime time = TimeOfLayers(model, rates, 1);
  return time.bytes / time.seconds;
}

double LayerTokenRate(const Model& model, const ComputeRates& rates) {
  constexpr int64_t kMany = ComputeRates::kMostTokens;
  const LayerTime time = TimeOfLayers(model, rates, kMany);
  return time.bytes * static_cast<double>(kMany) / time.seconds;
}

SplitRates SplitRatesOf(const Model& model, const ComputeRates& cpu,
                        const ComputeRates& device, double upload,
                        double disk) {
  SplitRates rates;
  rates.upload = upload;
  rates.disk = disk;
  rates.cpu = LayerRate(model, cpu);
  rates.device = LayerRate(model, device);
  rates.cpu_tokens = LayerTokenRate(model, cpu);
  rates.device_tokens = LayerTokenRate(model, device);
  return rates;
}

StatusOr<SplitRates> FindSplitRates(const Model& model,
                                    const EngineOptions& options,
                                    const EnginePlan& plan, Profile* profile) {
  if (options.split_rates.known()) return options.split_rates;
  const bool open = !options.cpu_ffn || !options.cpu_ffn_prefill;
  if (!open || !plan.vram || plan.vram->pass_read_bytes == 0 ||
      plan.options.gpu == nullptr)
    return SplitRates{};
  RateFinder finder(profile, {.threads = plan.options.threads,
                              .gpu = plan.options.gpu,
                              .measure = WhatToMeasure(plan)});
  const auto find = [&]() -> StatusOr<SplitRates> {
    ASSIGN_OR_RETURN(const double upload, finder.Upload());
    ASSIGN_OR_RETURN(const ComputeRates* device, finder.Device(model));
    ASSIGN_OR_RETURN(const ComputeRates* cpu, finder.Cpu(model));
    const DiskRecord* const disk = profile->FindDisk(
        IdentifyDisk(*model.checkpoint().files().front()).Key());
    return SplitRatesOf(model, *cpu, *device, upload,
                        disk != nullptr ? disk->bytes_per_second : 0);
  };
  const StatusOr<SplitRates> rates = find();
  finder.Remember();
  // An engine works without; what is wrong with the device it will say itself.
  if (absl::IsNotFound(rates.status()) ||
      absl::IsResourceExhausted(rates.status()))
    return SplitRates{};
  return rates;
}

}  // namespace coldstream
