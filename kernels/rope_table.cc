#include "kernels/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace coldstream {
namespace {

// The (fractional) pair that turns `rotations` times within the original
// context: solves original_context * base^(-2i/d) = 2 pi rotations for i.
double PairOfRotations(const RopeParams& params, double rotations) {
  const double context = static_cast<double>(params.original_context);
  return static_cast<double>(params.rot_dim) *
         std::log(context / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(params.base));
}

// YaRN's ramp over the pairs: 0 up to `low` (fast pairs, frequency kept), 1
// from `high` on (slow pairs, frequency divided by the factor).
struct Ramp {
  double low;
  double high;

  double At(double pair) const {
    // 0.001 as in the authors' code: the two may round to the same pair.
    const double width = std::max(high - low, 0.001);
    return std::clamp((pair - low) / width, 0.0, 1.0);
  }
};

Ramp YarnRamp(const RopeParams& params) {
  const double last = static_cast<double>(params.rot_dim - 1);
  const double low = std::floor(PairOfRotations(params, params.beta_fast));
  const double high = std::ceil(PairOfRotations(params, params.beta_slow));
  return {std::max(low, 0.0), std::min(high, last)};
}

double Magnitude(const RopeParams& params) {
  if (params.attention_factor != 0) return params.attention_factor;
  // Plain interpolation (extrapolation 0) keeps the magnitude.
  const bool corrected = params.scaling == RopeScaling::kYarn &&
                         params.factor > 1 && params.extrapolation != 0;
  return corrected ? 0.1 * std::log(params.factor) + 1 : 1;
}

}  // namespace

RopeTable::RopeTable(const RopeParams& params)
    : rot_dim_(params.rot_dim), magnitude_(Magnitude(params)) {
  CHECK(params.rot_dim > 0 && params.rot_dim % 2 == 0);
  const size_t pairs = static_cast<size_t>(params.rot_dim / 2);
  CHECK(params.frequency_divisors.empty() ||
        params.frequency_divisors.size() == pairs);
  const bool yarn = params.scaling == RopeScaling::kYarn;
  CHECK(!yarn || params.original_context > 0);
  const Ramp ramp = yarn ? YarnRamp(params) : Ramp{0, 0};
  frequencies_.resize(pairs);
  for (size_t i = 0; i < pairs; ++i) {
    const double pair = static_cast<double>(i);
    double kept =
        std::pow(params.base, -2 * pair / static_cast<double>(params.rot_dim));
    if (!params.frequency_divisors.empty())
      kept /= double{params.frequency_divisors[i]};
    const double divided = kept / params.factor;
    // Share of the pair that keeps its frequency.
    const double share =
        yarn ? (1 - ramp.At(pair)) * params.extrapolation : 0.0;
    frequencies_[i] = params.scaling == RopeScaling::kNone
                          ? kept
                          : divided * (1 - share) + kept * share;
  }
}

void RopeTable::Fill(std::span<const int64_t> positions, float* out) const {
  for (const int64_t position : positions) {
    for (const double frequency : frequencies_) {
      const double angle = static_cast<double>(position) * frequency;
      *out++ = static_cast<float>(std::cos(angle) * magnitude_);
      *out++ = static_cast<float>(std::sin(angle) * magnitude_);
    }
  }
}

}  // namespace coldstream
