// The one-line operations: add, scale, to_f16, all_finite.

#if defined(__AVX2__)

#include "kernels/cpu/avx2/register.h"
//
#include "kernels/cpu/avx2/lanes.h"

namespace coldstream {
namespace {

void Add(const float* x, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += kLanes)
    StoreFirst(
        out + i, n - i,
        _mm256_add_ps(LoadFirst(out + i, n - i), LoadFirst(x + i, n - i)));
}

void Scale(float factor, int64_t n, float* x) {
  const __m256 f = _mm256_set1_ps(factor);
  for (int64_t i = 0; i < n; i += kLanes)
    StoreFirst(x + i, n - i, _mm256_mul_ps(LoadFirst(x + i, n - i), f));
}

void ToF16(const float* x, int64_t n, uint16_t* out) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t left = n - i;
    const __m128i h = _mm256_cvtps_ph(
        LoadFirst(x + i, left), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (left >= kLanes) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), h);
    } else {
      alignas(16) uint16_t last[kLanes];
      _mm_store_si128(reinterpret_cast<__m128i*>(last), h);
      for (int64_t j = 0; j < left; ++j) out[i + j] = last[j];
    }
  }
}

// Not finite: all eight bits of the exponent set.
bool AllFinite(const float* x, int64_t n) {
  const __m256i exponent = _mm256_set1_epi32(0x7f800000);
  __m256i bad = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; i += kLanes) {
    const __m256i v = _mm256_castps_si256(LoadFirst(x + i, n - i));
    bad = _mm256_or_si256(
        bad, _mm256_cmpeq_epi32(_mm256_and_si256(v, exponent), exponent));
  }
  return _mm256_testz_si256(bad, bad) != 0;
}

}  // namespace

void RegisterAvx2Elementwise(Ops* ops) {
  ops->add = Add;
  ops->scale = Scale;
  ops->to_f16 = ToF16;
  ops->all_finite = AllFinite;
}

}  // namespace coldstream

#endif  // __AVX2__
