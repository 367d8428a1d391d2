#if defined(__AVX2__)

#include "kernels/cpu/avx2/register.h"
//
#include "kernels/cpu/avx2/exp.h"
#include "kernels/cpu/avx2/lanes.h"

namespace coldstream {
namespace {

// g * sigmoid(g) * up. The sigmoid is exp(-|g|) over or under 1, so that
// nothing overflows.
__m256 Gate(__m256 g, __m256 up) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 e =
      ExpOfNonPositive(_mm256_or_ps(g, _mm256_set1_ps(-0.0f)));  // -|g|
  const __m256 negative = _mm256_cmp_ps(g, _mm256_setzero_ps(), _CMP_LT_OQ);
  const __m256 sigmoid =
      _mm256_div_ps(_mm256_blendv_ps(one, e, negative), _mm256_add_ps(one, e));
  return _mm256_mul_ps(_mm256_mul_ps(g, sigmoid), up);
}

void Swiglu(const float* gate, const float* up, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += kLanes)
    StoreFirst(out + i, n - i,
               Gate(LoadFirst(gate + i, n - i), LoadFirst(up + i, n - i)));
}

}  // namespace

void RegisterAvx2Swiglu(Ops* ops) { ops->swiglu = Swiglu; }

}  // namespace coldstream

#endif  // __AVX2__
