// Sums in double, in sixteen lanes by position; the variance from distances to
// the mean, so that nothing cancels.

#if defined(__AVX512F__)

#include <immintrin.h>

#include "kernels/cpu/avx512/register.h"

namespace coldstream {
namespace {

constexpr int64_t kLanes = 16;

__mmask16 FirstLanes(int64_t n) {
  return static_cast<__mmask16>(n >= kLanes ? 0xffff : (1 << n) - 1);
}

// Sixteen floats as two vectors of doubles.
struct Wide {
  __m512d low;
  __m512d high;
};

Wide Widen(__m512 v) {
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(v)),
          _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))};
}

double Mean(const float* x, int64_t n) {
  __m512d low = _mm512_setzero_pd();
  __m512d high = _mm512_setzero_pd();
  for (int64_t i = 0; i < n; i += kLanes) {
    const Wide v = Widen(_mm512_maskz_loadu_ps(FirstLanes(n - i), x + i));
    low = _mm512_add_pd(low, v.low);
    high = _mm512_add_pd(high, v.high);
  }
  return _mm512_reduce_add_pd(_mm512_add_pd(low, high)) /
         static_cast<double>(n);
}

double Variance(const float* x, int64_t n, double mean) {
  const __m512d center = _mm512_set1_pd(mean);
  __m512d low = _mm512_setzero_pd();
  __m512d high = _mm512_setzero_pd();
  for (int64_t i = 0; i < n; i += kLanes) {
    const __mmask16 mask = FirstLanes(n - i);
    const Wide v = Widen(_mm512_maskz_loadu_ps(mask, x + i));
    const __m512d a =
        _mm512_maskz_sub_pd(static_cast<__mmask8>(mask & 0xff), v.low, center);
    const __m512d b =
        _mm512_maskz_sub_pd(static_cast<__mmask8>(mask >> 8), v.high, center);
    low = _mm512_fmadd_pd(a, a, low);
    high = _mm512_fmadd_pd(b, b, high);
  }
  return _mm512_reduce_add_pd(_mm512_add_pd(low, high)) /
         static_cast<double>(n);
}

// (x - mean) * inverse * weight + bias in double: the distance from the mean
// may be a small difference of large values.
__m256 Normalize(__m512d x, __m512d mean, __m512d inverse, __m512d weight,
                 __m512d bias) {
  const __m512d scaled = _mm512_mul_pd(_mm512_sub_pd(x, mean), inverse);
  return _mm512_cvtpd_ps(_mm512_fmadd_pd(scaled, weight, bias));
}

void LayerNorm(const float* x, const float* weight, const float* bias,
               float eps, int64_t n, float* out) {
  const double mean = Mean(x, n);
  const __m512d center = _mm512_set1_pd(mean);
  const __m512d inverse =
      _mm512_set1_pd(1.0 / __builtin_sqrt(Variance(x, n, mean) + double{eps}));
  for (int64_t i = 0; i < n; i += kLanes) {
    const __mmask16 mask = FirstLanes(n - i);
    const Wide v = Widen(_mm512_maskz_loadu_ps(mask, x + i));
    const Wide w = Widen(_mm512_maskz_loadu_ps(mask, weight + i));
    const Wide b = Widen(bias != nullptr ? _mm512_maskz_loadu_ps(mask, bias + i)
                                         : _mm512_setzero_ps());
    const __m256 low = Normalize(v.low, center, inverse, w.low, b.low);
    const __m256 high = Normalize(v.high, center, inverse, w.high, b.high);
    _mm512_mask_storeu_ps(
        out + i, mask,
        _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1));
  }
}

}  // namespace

void RegisterAvx512LayerNorm(Ops* ops) { ops->layer_norm = LayerNorm; }

}  // namespace coldstream

#endif  // __AVX512F__
