#include <cmath>

#include "kernels/cpu/scalar/register.h"

namespace coldstream {
namespace {

void RmsNorm(const float* x, const float* weight, float eps, int64_t n,
             float* out) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += double{x[i]} * double{x[i]};
  const double inverse =
      1.0 / std::sqrt(squares / static_cast<double>(n) + double{eps});
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<float>(double{x[i]} * inverse * double{weight[i]});
}

}  // namespace

void RegisterScalarRmsNorm(Ops* ops) { ops->rms_norm = RmsNorm; }

}  // namespace coldstream
