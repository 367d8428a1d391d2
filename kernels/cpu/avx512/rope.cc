#if defined(__AVX512F__)

#include <immintrin.h>

#include "kernels/cpu/avx512/register.h"

namespace coldstream {
namespace {

constexpr int64_t kLanes = 16;

__mmask16 FirstLanes(int64_t n) {
  return static_cast<__mmask16>(n >= kLanes ? 0xffff : (1 << n) - 1);
}

// Eight pairs at a time: x = a b a b ..., cos_sin = c s c s ...
void RotateAdjacent(float* head, int64_t rot_dim, const float* cos_sin) {
  for (int64_t i = 0; i < rot_dim; i += kLanes) {
    const __mmask16 mask = FirstLanes(rot_dim - i);
    const __m512 x = _mm512_maskz_loadu_ps(mask, head + i);
    const __m512 angle = _mm512_maskz_loadu_ps(mask, cos_sin + i);
    const __m512 swapped = _mm512_permute_ps(x, 0xb1);
    const __m512 cos = _mm512_moveldup_ps(angle);
    const __m512 sin = _mm512_movehdup_ps(angle);
    // Even lanes a c - b s, odd lanes b c + a s.
    _mm512_mask_storeu_ps(
        head + i, mask,
        _mm512_fmaddsub_ps(x, cos, _mm512_mul_ps(swapped, sin)));
  }
}

// Sixteen pairs at a time: first half and second half of the rotated width.
void RotateHalves(float* head, int64_t pairs, const float* cos_sin) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20,
                                         22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  for (int64_t i = 0; i < pairs; i += kLanes) {
    const int64_t left = pairs - i;
    const __mmask16 mask = FirstLanes(left);
    const __m512 low =
        _mm512_maskz_loadu_ps(FirstLanes(2 * left), cos_sin + 2 * i);
    const __m512 high =
        left > kLanes / 2 ? _mm512_maskz_loadu_ps(FirstLanes(2 * left - kLanes),
                                                  cos_sin + 2 * i + kLanes)
                          : _mm512_setzero_ps();
    const __m512 cos = _mm512_permutex2var_ps(low, even, high);
    const __m512 sin = _mm512_permutex2var_ps(low, odd, high);
    const __m512 a = _mm512_maskz_loadu_ps(mask, head + i);
    const __m512 b = _mm512_maskz_loadu_ps(mask, head + pairs + i);
    _mm512_mask_storeu_ps(head + i, mask,
                          _mm512_fmsub_ps(a, cos, _mm512_mul_ps(b, sin)));
    _mm512_mask_storeu_ps(head + pairs + i, mask,
                          _mm512_fmadd_ps(a, sin, _mm512_mul_ps(b, cos)));
  }
}

void Rope(float* x, int64_t heads, int64_t head_dim, int64_t rot_dim,
          const float* cos_sin, RopePairing pairing) {
  for (int64_t h = 0; h < heads; ++h) {
    if (pairing == RopePairing::kAdjacent)
      RotateAdjacent(x + h * head_dim, rot_dim, cos_sin);
    else
      RotateHalves(x + h * head_dim, rot_dim / 2, cos_sin);
  }
}

}  // namespace

void RegisterAvx512Rope(Ops* ops) { ops->rope = Rope; }

}  // namespace coldstream

#endif  // __AVX512F__
