// exp of eight values, none of them positive: softmax and the sigmoid.
//
// Internal linkage on purpose, and the method of cpu/avx512/exp.h with its
// polynomial; here 2^n is made from bits, and below the least normal float
// (x < -87.33) the result is 0. NaN stays NaN.
#ifndef COLDSTREAM_KERNELS_CPU_AVX2_EXP_H_
#define COLDSTREAM_KERNELS_CPU_AVX2_EXP_H_

#include <immintrin.h>

namespace coldstream {
namespace {

inline __m256 ExpOfNonPositive(__m256 value) {
  const __m256 least = _mm256_set1_ps(-87.33f);
  // The operand order keeps NaN: max returns its second operand then.
  const __m256 x = _mm256_max_ps(least, value);
  const __m256 n = _mm256_round_ps(
      _mm256_mul_ps(x, _mm256_set1_ps(0x1.715476p+0f)),  // log2(e)
      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln 2 in two parts, the first short enough that n times it is exact.
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62e4p-1f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.7f7d1cp-20f), r);
  __m256 p = _mm256_set1_ps(0x1.6a23dp-10f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.123a2p-7f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.5558f2p-5f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.555492p-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.fffffcp-2f));
  p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
  const __m256i bits = _mm256_slli_epi32(
      _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  const __m256 e = _mm256_mul_ps(_mm256_add_ps(p, _mm256_set1_ps(1.0f)),
                                 _mm256_castsi256_ps(bits));
  return _mm256_andnot_ps(_mm256_cmp_ps(value, least, _CMP_LT_OQ), e);
}

}  // namespace
}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_CPU_AVX2_EXP_H_
