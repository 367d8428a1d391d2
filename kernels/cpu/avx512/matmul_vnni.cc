// Products on CPUs with 8-bit dot products (AVX-512 VNNI).

#if defined(__AVX512VNNI__)

#include "kernels/cpu/avx512/matmul_rows.h"
#include "kernels/cpu/avx512/register.h"

namespace coldstream {
namespace {

struct VnniDot {
  template <bool kWide>
  static __m512i Bytes(__m512i acc, __m512i w, __m512i y) {
    return _mm512_dpbusd_epi32(acc, w, y);
  }
  static __m512i Pairs(__m512i acc, __m512i a, __m512i b) {
    return _mm512_dpwssd_epi32(acc, a, b);
  }
};

}  // namespace

void RegisterAvx512VnniMatmul(Ops* ops) { avx512::RegisterRows<VnniDot>(ops); }

}  // namespace coldstream

#endif  // __AVX512VNNI__
