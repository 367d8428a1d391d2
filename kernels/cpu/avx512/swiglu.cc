#if defined(__AVX512F__)

#include "kernels/cpu/avx512/register.h"
//
#include "kernels/cpu/avx512/exp.h"

namespace coldstream {
namespace {

constexpr int64_t kLanes = 16;

// g * sigmoid(g) * up. The sigmoid is exp(-|g|) over or under 1, so that
// nothing overflows.
__m512 Gate(__m512 g, __m512 up) {
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 e =
      ExpOfNonPositive(_mm512_or_ps(g, _mm512_set1_ps(-0.0f)));  // -|g|
  const __mmask16 negative =
      _mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_LT_OQ);
  const __m512 sigmoid = _mm512_div_ps(_mm512_mask_mov_ps(one, negative, e),
                                       _mm512_add_ps(one, e));
  return _mm512_mul_ps(_mm512_mul_ps(g, sigmoid), up);
}

void Swiglu(const float* gate, const float* up, int64_t n, float* out) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    _mm512_storeu_ps(out + i,
                     Gate(_mm512_loadu_ps(gate + i), _mm512_loadu_ps(up + i)));
  if (i < n) {
    const __mmask16 mask = static_cast<__mmask16>((1 << (n - i)) - 1);
    _mm512_mask_storeu_ps(out + i, mask,
                          Gate(_mm512_maskz_loadu_ps(mask, gate + i),
                               _mm512_maskz_loadu_ps(mask, up + i)));
  }
}

}  // namespace

void RegisterAvx512Swiglu(Ops* ops) { ops->swiglu = Swiglu; }

}  // namespace coldstream

#endif  // __AVX512F__
