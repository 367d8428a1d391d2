#include <cmath>

#include "kernels/cpu/scalar/register.h"

namespace coldstream {
namespace {

// sigmoid(g) as exp(-|g|) over or under 1, so that nothing overflows.
double Sigmoid(double g) {
  const double e = std::exp(-std::fabs(g));
  return (g < 0 ? e : 1.0) / (1.0 + e);
}

void Swiglu(const float* gate, const float* up, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    const double g = gate[i];
    out[i] = static_cast<float>(g * Sigmoid(g) * double{up[i]});
  }
}

}  // namespace

void RegisterScalarSwiglu(Ops* ops) { ops->swiglu = Swiglu; }

}  // namespace coldstream
