// The one-line operations: add, scale, to_f16, all_finite.

#include <cmath>

#include "base/half.h"
#include "kernels/cpu/scalar/register.h"

namespace coldstream {
namespace {

void Add(const float* x, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] += x[i];
}

void Scale(float factor, int64_t n, float* x) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

void ToF16(const float* x, int64_t n, uint16_t* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = F32ToF16(x[i]);
}

bool AllFinite(const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!std::isfinite(x[i])) return false;
  return true;
}

}  // namespace

void RegisterScalarElementwise(Ops* ops) {
  ops->add = Add;
  ops->scale = Scale;
  ops->to_f16 = ToF16;
  ops->all_finite = AllFinite;
}

}  // namespace coldstream
