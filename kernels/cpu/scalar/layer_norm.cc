#include <cmath>

#include "kernels/cpu/scalar/register.h"

namespace coldstream {
namespace {

void LayerNorm(const float* x, const float* weight, const float* bias,
               float eps, int64_t n, float* out) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{x[i]};
  const double mean = sum / static_cast<double>(n);
  double squares = 0;  // of the distance from the mean: no cancellation
  for (int64_t i = 0; i < n; ++i) {
    const double distance = double{x[i]} - mean;
    squares += distance * distance;
  }
  const double inverse =
      1.0 / std::sqrt(squares / static_cast<double>(n) + double{eps});
  for (int64_t i = 0; i < n; ++i) {
    const double shift = bias != nullptr ? double{bias[i]} : 0.0;
    out[i] = static_cast<float>(
        (double{x[i]} - mean) * inverse * double{weight[i]} + shift);
  }
}

}  // namespace

void RegisterScalarLayerNorm(Ops* ops) { ops->layer_norm = LayerNorm; }

}  // namespace coldstream
