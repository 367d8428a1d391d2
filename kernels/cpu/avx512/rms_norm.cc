// Squares are summed in double, in sixteen lanes by position: large activations
// neither overflow nor lose the small ones, and the order is fixed.

#if defined(__AVX512F__)

#include <immintrin.h>

#include "kernels/cpu/avx512/register.h"

namespace coldstream {
namespace {

constexpr int64_t kLanes = 16;

__mmask16 FirstLanes(int64_t n) {
  return static_cast<__mmask16>(n >= kLanes ? 0xffff : (1 << n) - 1);
}

double SumOfSquares(const float* x, int64_t n) {
  __m512d low = _mm512_setzero_pd();
  __m512d high = _mm512_setzero_pd();
  for (int64_t i = 0; i < n; i += kLanes) {
    const __m512 v = _mm512_maskz_loadu_ps(FirstLanes(n - i), x + i);
    const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
    const __m512d b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
    low = _mm512_fmadd_pd(a, a, low);
    high = _mm512_fmadd_pd(b, b, high);
  }
  return _mm512_reduce_add_pd(_mm512_add_pd(low, high));
}

void RmsNorm(const float* x, const float* weight, float eps, int64_t n,
             float* out) {
  const double mean = SumOfSquares(x, n) / static_cast<double>(n);
  const __m512 inverse = _mm512_set1_ps(
      static_cast<float>(1.0 / __builtin_sqrt(mean + double{eps})));
  for (int64_t i = 0; i < n; i += kLanes) {
    const __mmask16 mask = FirstLanes(n - i);
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
    const __m512 w = _mm512_maskz_loadu_ps(mask, weight + i);
    _mm512_mask_storeu_ps(out + i, mask,
                          _mm512_mul_ps(_mm512_mul_ps(v, inverse), w));
  }
}

}  // namespace

void RegisterAvx512RmsNorm(Ops* ops) { ops->rms_norm = RmsNorm; }

}  // namespace coldstream

#endif  // __AVX512F__
