#if defined(__AVX2__)

#include "kernels/cpu/avx2/register.h"
//
#include "kernels/cpu/avx2/lanes.h"

namespace coldstream {
namespace {

// Four pairs at a time: x = a b a b ..., cos_sin = c s c s ...
void RotateAdjacent(float* head, int64_t rot_dim, const float* cos_sin) {
  for (int64_t i = 0; i < rot_dim; i += kLanes) {
    const int64_t left = rot_dim - i;
    const __m256 x = LoadFirst(head + i, left);
    const __m256 angle = LoadFirst(cos_sin + i, left);
    const __m256 swapped = _mm256_permute_ps(x, 0xb1);
    const __m256 cos = _mm256_moveldup_ps(angle);
    const __m256 sin = _mm256_movehdup_ps(angle);
    // Even lanes a c - b s, odd lanes b c + a s.
    StoreFirst(head + i, left,
               _mm256_fmaddsub_ps(x, cos, _mm256_mul_ps(swapped, sin)));
  }
}

// Eight pairs at a time: first half and second half of the rotated width.
void RotateHalves(float* head, int64_t pairs, const float* cos_sin) {
  const __m256i gather = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
  for (int64_t i = 0; i < pairs; i += kLanes) {
    const int64_t left = pairs - i;
    const int64_t left_high = 2 * left > kLanes ? 2 * left - kLanes : 0;
    const __m256 low = LoadFirst(cos_sin + 2 * i, 2 * left);
    const __m256 high = left_high > 0
                            ? LoadFirst(cos_sin + 2 * i + kLanes, left_high)
                            : _mm256_setzero_ps();
    // c0 c1 c4 c5 | c2 c3 c6 c7 by 128-bit lanes, then in order.
    const __m256 cos =
        _mm256_permutevar8x32_ps(_mm256_shuffle_ps(low, high, 0x88), gather);
    const __m256 sin =
        _mm256_permutevar8x32_ps(_mm256_shuffle_ps(low, high, 0xdd), gather);
    const __m256 a = LoadFirst(head + i, left);
    const __m256 b = LoadFirst(head + pairs + i, left);
    StoreFirst(head + i, left, _mm256_fmsub_ps(a, cos, _mm256_mul_ps(b, sin)));
    StoreFirst(head + pairs + i, left,
               _mm256_fmadd_ps(a, sin, _mm256_mul_ps(b, cos)));
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

void RegisterAvx2Rope(Ops* ops) { ops->rope = Rope; }

}  // namespace coldstream

#endif  // __AVX2__
