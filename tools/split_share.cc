#include "tools/split_share.h"

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

using Json = nlohmann::ordered_json;

Json GigabytesOrNull(double bytes_per_second) {
  if (bytes_per_second <= 0) return nullptr;
  return bytes_per_second / 1e9;
}

Json PhaseJson(const SplitSummary& split, Phase phase) {
  const SplitShare& share =
      phase == Phase::kDecode ? split.decode : split.prefill;
  return {{"cpu_ffn", split.choice.counts.ffn_of(phase)},
          {"source", SplitSourceName(split.choice.ffn_source(phase))},
          {"cpu_units", share.cpu_units},
          {"cpu_bytes", share.cpu_bytes},
          {"upload_bytes_per_pass", share.upload_bytes}};
}

Json RatesJson(const SplitRates& rates) {
  if (!rates.known()) return nullptr;
  return {{"upload_GBps", GigabytesOrNull(rates.upload)},
          {"disk_GBps", GigabytesOrNull(rates.disk)},
          {"cpu_GBps", GigabytesOrNull(rates.cpu)},
          {"device_GBps", GigabytesOrNull(rates.device)},
          {"cpu_token_GBps", GigabytesOrNull(rates.cpu_tokens)},
          {"device_token_GBps", GigabytesOrNull(rates.device_tokens)},
          {"crossing_seconds", rates.crossing_seconds}};
}

std::string CountText(int64_t count) {
  return count == 0 ? "none" : absl::StrFormat("%d", count);
}

}  // namespace

SplitShare ShareOf(const Model& model, const EnginePlan& plan, Phase phase) {
  SplitShare share;
  if (!plan.vram) return share;
  const auto& units = model.weights().units;
  for (size_t i = 0; i < units.size(); ++i) {
    if (plan.placement.OnCpu(static_cast<int>(i), phase)) {
      ++share.cpu_units;
      share.cpu_bytes += units[i].weight_bytes();
      continue;
    }
    if (plan.vram->resident[i]) continue;
    share.upload_bytes += units[i].read_bytes;
    if (!plan.memory.resident[i]) share.disk_bytes += units[i].read_bytes;
  }
  return share;
}

std::optional<SplitSummary> SummarizeSplit(const Model& model,
                                           const EnginePlan& plan) {
  if (!plan.vram) return std::nullopt;
  return SplitSummary{.layers = model.config().layer_count(),
                      .choice = plan.split,
                      .decode = ShareOf(model, plan, Phase::kDecode),
                      .prefill = ShareOf(model, plan, Phase::kPrefill),
                      .rates = plan.options.split_rates};
}

nlohmann::ordered_json SplitJson(const std::optional<SplitSummary>& split) {
  if (!split) return nullptr;
  Json json;
  json["layers"] = split->layers;
  json["cpu_layers"] = split->choice.counts.layers;
  json["source"] = SplitSourceName(split->choice.layers);
  json["decode"] = PhaseJson(*split, Phase::kDecode);
  json["prefill"] = PhaseJson(*split, Phase::kPrefill);
  json["rates"] = RatesJson(split->rates);
  return json;
}

std::string SplitText(const SplitChoice& choice) {
  const auto ffns = [&](Phase phase) {
    return absl::StrFormat("%s (%s)", CountText(choice.counts.ffn_of(phase)),
                           SplitSourceName(choice.ffn_source(phase)));
  };
  return absl::StrFormat(
      "%s of the layers (%s), and of the FFNs of the others %s in generation, "
      "%s in prompts",
      CountText(choice.counts.layers), SplitSourceName(choice.layers),
      ffns(Phase::kDecode), ffns(Phase::kPrefill));
}

}  // namespace coldstream
