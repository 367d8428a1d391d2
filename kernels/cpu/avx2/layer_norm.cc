// Sums in double, in eight lanes by position; the variance from distances to
// the mean, so that nothing cancels.

#if defined(__AVX2__)

#include "kernels/cpu/avx2/register.h"
//
#include "kernels/cpu/avx2/lanes.h"

namespace coldstream {
namespace {

double Mean(const float* x, int64_t n) {
  __m256d low = _mm256_setzero_pd();
  __m256d high = _mm256_setzero_pd();
  for (int64_t i = 0; i < n; i += kLanes) {
    const __m256 v = LoadFirst(x + i, n - i);
    low = _mm256_add_pd(low, LowHalf(v));
    high = _mm256_add_pd(high, HighHalf(v));
  }
  return SumLanes(_mm256_add_pd(low, high)) / static_cast<double>(n);
}

double Variance(const float* x, int64_t n, double mean) {
  const __m256d center = _mm256_set1_pd(mean);
  __m256d low = _mm256_setzero_pd();
  __m256d high = _mm256_setzero_pd();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m256 v = _mm256_loadu_ps(x + i);
    const __m256d a = _mm256_sub_pd(LowHalf(v), center);
    const __m256d b = _mm256_sub_pd(HighHalf(v), center);
    low = _mm256_fmadd_pd(a, a, low);
    high = _mm256_fmadd_pd(b, b, high);
  }
  double rest = 0;  // the last n % 8, whose empty lanes are not at the mean
  for (; i < n; ++i) {
    const double distance = double{x[i]} - mean;
    rest += distance * distance;
  }
  return (SumLanes(_mm256_add_pd(low, high)) + rest) / static_cast<double>(n);
}

// (x - mean) * inverse * weight + bias in double: the distance from the mean
// may be a small difference of large values.
__m128 Normalize(__m256d x, __m256d mean, __m256d inverse, __m256d weight,
                 __m256d bias) {
  const __m256d scaled = _mm256_mul_pd(_mm256_sub_pd(x, mean), inverse);
  return _mm256_cvtpd_ps(_mm256_fmadd_pd(scaled, weight, bias));
}

void LayerNorm(const float* x, const float* weight, const float* bias,
               float eps, int64_t n, float* out) {
  const double mean = Mean(x, n);
  const __m256d center = _mm256_set1_pd(mean);
  const __m256d inverse =
      _mm256_set1_pd(1.0 / __builtin_sqrt(Variance(x, n, mean) + double{eps}));
  for (int64_t i = 0; i < n; i += kLanes) {
    const __m256 v = LoadFirst(x + i, n - i);
    const __m256 w = LoadFirst(weight + i, n - i);
    const __m256 b =
        bias != nullptr ? LoadFirst(bias + i, n - i) : _mm256_setzero_ps();
    const __m128 low =
        Normalize(LowHalf(v), center, inverse, LowHalf(w), LowHalf(b));
    const __m128 high =
        Normalize(HighHalf(v), center, inverse, HighHalf(w), HighHalf(b));
    StoreFirst(out + i, n - i, _mm256_set_m128(high, low));
  }
}

}  // namespace

void RegisterAvx2LayerNorm(Ops* ops) { ops->layer_norm = LayerNorm; }

}  // namespace coldstream

#endif  // __AVX2__
