// Same bytes as the scalar row: the same operations in the same order a value.

#if defined(__AVX512F__)

#include <immintrin.h>

#include "kernels/activations.h"
#include "kernels/cpu/avx512/register.h"

namespace coldstream {
namespace {

struct Scaling {
  float scale;
  __m512 inverse;
  __mmask16 live;  // no lanes where the block is zero or not finite
};

// amax_bits: largest magnitude as bits, so that a NaN exceeds an infinity.
Scaling ScalingOf(__m512i amax_bits) {
  const float amax = _mm_cvtss_f32(_mm_castsi128_ps(
      _mm_cvtsi32_si128(static_cast<int>(_mm512_reduce_max_epu32(amax_bits)))));
  const float inverse = 127.0f / amax;
  if (!(amax <= 0x1.fffffep127f))
    return {__builtin_nanf(""), _mm512_setzero_ps(), 0};
  if (!(inverse <= 0x1.fffffep127f)) return {0, _mm512_setzero_ps(), 0};
  return {amax / 127.0f, _mm512_set1_ps(inverse), 0xffff};
}

__m512i MaxMagnitude(__m512i largest, const float* x) {
  const __m512i bits =
      _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(0x7fffffff));
  return _mm512_max_epu32(largest, bits);
}

// Sixteen numbers, stored; returned as 32-bit.
__m512i Quantize16(const float* x, const Scaling& scaling, int8_t* q) {
  const __m512i v = _mm512_maskz_cvtps_epi32(
      scaling.live, _mm512_mul_ps(_mm512_loadu_ps(x), scaling.inverse));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtepi32_epi8(v));
  return v;
}

void QuantizeQ8_32(const float* x, int64_t k, std::byte* out) {
  int8_t* q = reinterpret_cast<int8_t*>(out);
  float* scale = reinterpret_cast<float*>(out + k);
  int32_t* sum = reinterpret_cast<int32_t*>(out + k + k / 8);
  float* scaled_sum = reinterpret_cast<float*>(out + k + k / 4);
  for (int64_t b = 0; b < k / 32; ++b) {
    const float* block = x + 32 * b;
    const Scaling scaling = ScalingOf(
        MaxMagnitude(MaxMagnitude(_mm512_setzero_si512(), block), block + 16));
    const __m512i low = Quantize16(block, scaling, q + 32 * b);
    const __m512i high = Quantize16(block + 16, scaling, q + 32 * b + 16);
    scale[b] = scaling.scale;
    sum[b] = _mm512_reduce_add_epi32(_mm512_add_epi32(low, high));
    scaled_sum[b] = scaling.scale * static_cast<float>(sum[b]);
  }
}

void QuantizeQ8_256(const float* x, int64_t k, std::byte* out) {
  int8_t* q = reinterpret_cast<int8_t*>(out);
  int16_t* sum16 = reinterpret_cast<int16_t*>(out + k);
  int16_t* sum32 = reinterpret_cast<int16_t*>(out + k + k / 8);
  float* scale = reinterpret_cast<float*>(out + k + k / 8 + k / 16);
  for (int64_t b = 0; b < k / 256; ++b) {
    const float* block = x + 256 * b;
    __m512i largest = _mm512_setzero_si512();
    for (int i = 0; i < 256; i += 16)
      largest = MaxMagnitude(largest, block + i);
    const Scaling scaling = ScalingOf(largest);
    scale[b] = scaling.scale;
    for (int g = 0; g < 16; ++g) {
      const __m512i v =
          Quantize16(block + 16 * g, scaling, q + 256 * b + 16 * g);
      sum16[16 * b + g] = static_cast<int16_t>(_mm512_reduce_add_epi32(v));
    }
    for (int g = 0; g < 8; ++g) {
      sum32[8 * b + g] = static_cast<int16_t>(sum16[16 * b + 2 * g] +
                                              sum16[16 * b + 2 * g + 1]);
    }
  }
}

}  // namespace

void RegisterAvx512Quantize(Ops* ops) {
  ops->quantize[static_cast<size_t>(ActivationFormat::kQ8_32)] = QuantizeQ8_32;
  ops->quantize[static_cast<size_t>(ActivationFormat::kQ8_256)] =
      QuantizeQ8_256;
}

}  // namespace coldstream

#endif  // __AVX512F__
