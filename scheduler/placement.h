// Which units the CPU computes where a device does the rest of a pass.
//
// Decided before anything runs, for each kind of pass: which side computes a
// unit is a function of the options and of the pass, never of timing, because
// the sides differ in the last bits.
//
//   placement.OnCpu(unit, PhaseOf(tokens_of_the_pass));
#ifndef COLDSTREAM_SCHEDULER_PLACEMENT_H_
#define COLDSTREAM_SCHEDULER_PLACEMENT_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace coldstream {

// Kinds of pass. What tells them apart is how often a weight is used once it
// has been brought somewhere.
enum class Phase { kDecode, kPrefill };
inline constexpr std::array kPhases = {Phase::kDecode, Phase::kPrefill};

// The most tokens of a pass that takes about as long as one of a single token,
// because both sides wait for weights then, not for arithmetic: on a CPU the
// two meet at 16 or so (runtime/compute_rates.cc).
inline constexpr int64_t kMostDecodeTokens = 8;

inline Phase PhaseOf(int64_t pass_tokens) {
  return pass_tokens <= kMostDecodeTokens ? Phase::kDecode : Phase::kPrefill;
}

struct Placement {
  // By phase and unit; empty: none.
  std::array<std::vector<bool>, kPhases.size()> on_cpu = {};

  const std::vector<bool>& of(Phase phase) const {
    return on_cpu[static_cast<size_t>(phase)];
  }
  std::vector<bool>& of(Phase phase) {
    return on_cpu[static_cast<size_t>(phase)];
  }
  bool OnCpu(int unit, Phase phase) const {
    const auto index = static_cast<size_t>(unit);
    return index < of(phase).size() && of(phase)[index];
  }
  bool EverOnCpu(int unit) const {
    return std::any_of(kPhases.begin(), kPhases.end(),
                       [&](Phase phase) { return OnCpu(unit, phase); });
  }
  bool AlwaysOnCpu(int unit) const {
    return std::all_of(kPhases.begin(), kPhases.end(),
                       [&](Phase phase) { return OnCpu(unit, phase); });
  }
};

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_PLACEMENT_H_
