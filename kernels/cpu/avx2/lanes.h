// Eight floats, the first n of them real: how the AVX2 files handle the end of
// a row whose length is not a multiple of eight, and sum lanes in fixed order.
//
// Internal linkage on purpose: every file that includes this has its own copy,
// compiled with its own flags (see register.h).
#ifndef COLDSTREAM_KERNELS_CPU_AVX2_LANES_H_
#define COLDSTREAM_KERNELS_CPU_AVX2_LANES_H_

#include <immintrin.h>

#include <cstdint>

namespace coldstream {
namespace {

constexpr int64_t kLanes = 8;

// All ones in the first n lanes; n may be more than eight, not negative.
[[maybe_unused]] inline __m256i FirstLanes(int64_t n) {
  return _mm256_cmpgt_epi32(
      _mm256_set1_epi32(static_cast<int>(n < kLanes ? n : kLanes)),
      _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// The first n values of p, zero behind them; reads no further.
[[maybe_unused]] inline __m256 LoadFirst(const float* p, int64_t n) {
  return n >= kLanes ? _mm256_loadu_ps(p)
                     : _mm256_maskload_ps(p, FirstLanes(n));
}

[[maybe_unused]] inline void StoreFirst(float* p, int64_t n, __m256 v) {
  if (n >= kLanes)
    _mm256_storeu_ps(p, v);
  else
    _mm256_maskstore_ps(p, FirstLanes(n), v);
}

// The first n lanes of a, the others of b.
[[maybe_unused]] inline __m256 FirstOf(int64_t n, __m256 a, __m256 b) {
  return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(FirstLanes(n)));
}

[[maybe_unused]] inline __m256d LowHalf(__m256 v) {
  return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}
[[maybe_unused]] inline __m256d HighHalf(__m256 v) {
  return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}

[[maybe_unused]] inline double SumLanes(__m256d v) {
  const __m128d pair =
      _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
}

[[maybe_unused]] inline float SumLanes(__m256 v) {
  const __m128 four =
      _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// v[i]'s eight lanes added up, in lane i.
[[maybe_unused]] inline __m256i SumEach(const __m256i v[8]) {
  const auto four = [v](int i) {
    return _mm256_hadd_epi32(_mm256_hadd_epi32(v[i], v[i + 1]),
                             _mm256_hadd_epi32(v[i + 2], v[i + 3]));
  };
  const __m256i a = four(0);
  const __m256i b = four(4);
  return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                          _mm256_permute2x128_si256(a, b, 0x31));
}
// The same for four lanes.
[[maybe_unused]] inline __m256i SumEach(const __m128i v[8]) {
  const auto two = [v](int i) { return _mm256_set_m128i(v[i + 4], v[i]); };
  return _mm256_hadd_epi32(_mm256_hadd_epi32(two(0), two(1)),
                           _mm256_hadd_epi32(two(2), two(3)));
}

}  // namespace
}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_CPU_AVX2_LANES_H_
