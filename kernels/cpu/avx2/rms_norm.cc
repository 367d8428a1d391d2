// Squares are summed in double, in eight lanes by position: large activations
// neither overflow nor lose the small ones, and the order is fixed.

#if defined(__AVX2__)

#include "kernels/cpu/avx2/register.h"
//
#include "kernels/cpu/avx2/lanes.h"

namespace coldstream {
namespace {

double SumOfSquares(const float* x, int64_t n) {
  __m256d low = _mm256_setzero_pd();
  __m256d high = _mm256_setzero_pd();
  for (int64_t i = 0; i < n; i += kLanes) {
    const __m256 v = LoadFirst(x + i, n - i);
    low = _mm256_fmadd_pd(LowHalf(v), LowHalf(v), low);
    high = _mm256_fmadd_pd(HighHalf(v), HighHalf(v), high);
  }
  return SumLanes(_mm256_add_pd(low, high));
}

void RmsNorm(const float* x, const float* weight, float eps, int64_t n,
             float* out) {
  const double mean = SumOfSquares(x, n) / static_cast<double>(n);
  const __m256 inverse = _mm256_set1_ps(
      static_cast<float>(1.0 / __builtin_sqrt(mean + double{eps})));
  for (int64_t i = 0; i < n; i += kLanes) {
    const __m256 scaled = _mm256_mul_ps(LoadFirst(x + i, n - i), inverse);
    StoreFirst(out + i, n - i,
               _mm256_mul_ps(scaled, LoadFirst(weight + i, n - i)));
  }
}

}  // namespace

void RegisterAvx2RmsNorm(Ops* ops) { ops->rms_norm = RmsNorm; }

}  // namespace coldstream

#endif  // __AVX2__
