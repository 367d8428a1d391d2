// exp of sixteen values, none of them positive: softmax and the sigmoid.
//
// Internal linkage on purpose: every file that includes this has its own copy,
// compiled with its own flags (see register.h).
//
// Method: x = n ln 2 + r, |r| <= ln(2)/2; exp(r) = 1 + r + r^2 P(r) with P of
// degree 4, our own minimax fit of the relative error (Remez, 3.1e-9 before
// rounding); then 2^n exact. Error: under 1.1 ulp where the result is normal
// (checked by tests/kernels/swiglu_test.cc), subnormals rounded, 0 below -104.
// NaN stays NaN.
#ifndef COLDSTREAM_KERNELS_CPU_AVX512_EXP_H_
#define COLDSTREAM_KERNELS_CPU_AVX512_EXP_H_

#include <immintrin.h>

namespace coldstream {
namespace {

inline __m512 ExpOfNonPositive(__m512 x) {
  // The operand order keeps NaN: max returns its second operand then.
  x = _mm512_max_ps(_mm512_set1_ps(-104.0f), x);
  const __m512 n = _mm512_roundscale_ps(
      _mm512_mul_ps(x, _mm512_set1_ps(0x1.715476p+0f)),  // log2(e)
      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln 2 in two parts, the first short enough that n times it is exact.
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62e4p-1f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.7f7d1cp-20f), r);
  __m512 p = _mm512_set1_ps(0x1.6a23dp-10f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.123a2p-7f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.5558f2p-5f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.555492p-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.fffffcp-2f));
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
  return _mm512_scalef_ps(_mm512_add_ps(p, _mm512_set1_ps(1.0f)), n);
}

}  // namespace
}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_CPU_AVX512_EXP_H_
