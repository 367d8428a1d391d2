#include "runtime/split_counts.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

// A count of the options; more than there are means all.
StatusOr<int64_t> CountOf(const char* what, std::optional<int> asked,
                          int64_t most) {
  if (!asked) return 0;
  if (*asked < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is %d, expected 0 or more", what, *asked));
  }
  return std::min<int64_t>(*asked, most);
}

// `count` of `from`, spread evenly.
std::vector<int64_t> Spread(const std::vector<int64_t>& from, int64_t count) {
  std::vector<int64_t> chosen;
  const auto all = std::ssize(from);
  // Of count pieces of the same length, the middle of each.
  for (int64_t i = 0; i < count; ++i) {
    const int64_t middle = (2 * i + 1) * all / (2 * count);
    chosen.push_back(from[static_cast<size_t>(middle)]);
  }
  return chosen;
}

}  // namespace

StatusOr<SplitChoice> AskedSplit(const EngineOptions& options,
                                 int64_t layer_count) {
  const auto by = [](bool asked) {
    return asked ? SplitSource::kForced : SplitSource::kDefault;
  };
  SplitChoice choice;
  choice.layers = by(options.gpu_layers || options.cpu_layers);
  choice.ffn = by(options.cpu_ffn.has_value());
  choice.ffn_prefill = by(options.cpu_ffn || options.cpu_ffn_prefill);
  SplitCounts& counts = choice.counts;
  ASSIGN_OR_RETURN(counts.layers, CountOf("the number of the CPU's layers",
                                          options.cpu_layers, layer_count));
  if (options.gpu_layers) {
    // The output head is the last of them, as in llama.cpp.
    ASSIGN_OR_RETURN(const int64_t on_gpu,
                     CountOf("the number of the GPU's layers",
                             options.gpu_layers, layer_count + 1));
    const int64_t left = std::min(layer_count, layer_count + 1 - on_gpu);
    if (options.cpu_layers && counts.layers != left) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%d layers on the GPU leave %d of %d for the CPU, but %d were asked "
          "for; give one of the two",
          on_gpu, left, layer_count, counts.layers));
    }
    counts.layers = left;
  }
  const int64_t later = layer_count - counts.layers;
  ASSIGN_OR_RETURN(counts.ffn, CountOf("the number of the CPU's FFNs",
                                       options.cpu_ffn, later));
  counts.ffn_prefill = counts.ffn;
  if (options.cpu_ffn_prefill) {
    ASSIGN_OR_RETURN(counts.ffn_prefill,
                     CountOf("the number of the CPU's FFNs in prefill",
                             options.cpu_ffn_prefill, later));
  }
  return choice;
}

void SetSplit(const SplitCounts& counts, int64_t layer_count,
              EngineOptions* options) {
  options->gpu_layers = static_cast<int>(layer_count + 1 - counts.layers);
  options->cpu_layers = static_cast<int>(counts.layers);
  options->cpu_ffn = static_cast<int>(counts.ffn);
  options->cpu_ffn_prefill = static_cast<int>(counts.ffn_prefill);
}

Placement PlaceHalves(const WeightMap& weights, int64_t layer_count,
                      const SplitCounts& counts) {
  Placement placement;
  if (!counts.any()) return placement;
  std::vector<int64_t> later;
  for (int64_t layer = counts.layers; layer < layer_count; ++layer)
    later.push_back(layer);
  const int64_t more = std::max(counts.ffn, counts.ffn_prefill);
  const int64_t fewer = std::min(counts.ffn, counts.ffn_prefill);
  const std::vector<int64_t> larger = Spread(later, more);
  const std::vector<int64_t> smaller = Spread(larger, fewer);
  for (const Phase phase : kPhases) {
    const int64_t count =
        phase == Phase::kDecode ? counts.ffn : counts.ffn_prefill;
    std::vector<bool> ffn(static_cast<size_t>(layer_count));
    for (const int64_t layer : count == more ? larger : smaller)
      ffn[static_cast<size_t>(layer)] = true;
    for (const std::vector<MatrixRows>& unit : weights.matrices) {
      bool on_cpu = false;
      if (!unit.empty() && unit.front().kind != MatrixKind::kHead) {
        const int64_t layer = unit.front().layer;
        on_cpu =
            layer < counts.layers || (unit.front().kind >= MatrixKind::kGate &&
                                      ffn[static_cast<size_t>(layer)]);
      }
      placement.of(phase).push_back(on_cpu);
    }
  }
  return placement;
}

}  // namespace coldstream
