// Products on CPUs with AVX-512 but without VNNI: the same integers in more
// instructions.

#if defined(__AVX512F__)

#include "kernels/cpu/avx512/matmul_rows.h"
#include "kernels/cpu/avx512/register.h"

namespace coldstream {
namespace {

struct PlainDot {
  // Two products of 128 * 127 fit 16 bits; where w is larger, even and odd
  // bytes are widened first.
  template <bool kWide>
  static __m512i Bytes(__m512i acc, __m512i w, __m512i y) {
    if constexpr (kWide) {
      const __m512i w_even = _mm512_and_si512(w, _mm512_set1_epi16(255));
      const __m512i w_odd = _mm512_srli_epi16(w, 8);
      const __m512i y_even = _mm512_srai_epi16(_mm512_slli_epi16(y, 8), 8);
      const __m512i y_odd = _mm512_srai_epi16(y, 8);
      return Pairs(Pairs(acc, w_even, y_even), w_odd, y_odd);
    } else {
      return Pairs(acc, _mm512_maddubs_epi16(w, y), _mm512_set1_epi16(1));
    }
  }
  static __m512i Pairs(__m512i acc, __m512i a, __m512i b) {
    return _mm512_add_epi32(acc, _mm512_madd_epi16(a, b));
  }
};

}  // namespace

void RegisterAvx512Matmul(Ops* ops) { avx512::RegisterRows<PlainDot>(ops); }

}  // namespace coldstream

#endif  // __AVX512F__
