// The one-line operations: add, scale, to_f16, all_finite.

#if defined(__AVX512F__)

#include <immintrin.h>

#include "kernels/cpu/avx512/register.h"

namespace coldstream {
namespace {

constexpr int64_t kLanes = 16;

__mmask16 FirstLanes(int64_t n) {
  return static_cast<__mmask16>(n >= kLanes ? 0xffff : (1 << n) - 1);
}

void Add(const float* x, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const __mmask16 mask = FirstLanes(n - i);
    _mm512_mask_storeu_ps(out + i, mask,
                          _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out + i),
                                        _mm512_maskz_loadu_ps(mask, x + i)));
  }
}

void Scale(float factor, int64_t n, float* x) {
  const __m512 f = _mm512_set1_ps(factor);
  for (int64_t i = 0; i < n; i += kLanes) {
    const __mmask16 mask = FirstLanes(n - i);
    _mm512_mask_storeu_ps(x + i, mask,
                          _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), f));
  }
}

void ToF16(const float* x, int64_t n, uint16_t* out) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const __mmask16 mask = FirstLanes(n - i);
    _mm256_mask_storeu_epi16(
        out + i, mask,
        _mm512_cvtps_ph(_mm512_maskz_loadu_ps(mask, x + i),
                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
}

// Not finite: all eight bits of the exponent set.
bool AllFinite(const float* x, int64_t n) {
  const __m512i exponent = _mm512_set1_epi32(0x7f800000);
  __mmask16 bad = 0;
  for (int64_t i = 0; i < n; i += kLanes) {
    const __m512i v = _mm512_maskz_loadu_epi32(FirstLanes(n - i), x + i);
    bad = static_cast<__mmask16>(
        bad | _mm512_cmpeq_epi32_mask(_mm512_and_si512(v, exponent), exponent));
  }
  return bad == 0;
}

}  // namespace

void RegisterAvx512Elementwise(Ops* ops) {
  ops->add = Add;
  ops->scale = Scale;
  ops->to_f16 = ToF16;
  ops->all_finite = AllFinite;
}

}  // namespace coldstream

#endif  // __AVX512F__
