// The same bytes as the scalar row: a division, a product and a rounding per
// value, each of which IEEE arithmetic fixes.

#if defined(__AVX2__)

#include "kernels/cpu/avx2/register.h"
//
#include "kernels/activations.h"
#include "kernels/cpu/avx2/lanes.h"

namespace coldstream {
namespace {

struct Scaling {
  float scale = 0;
  float inverse = 0;  // 0: every number is 0
};

// From the largest magnitude, as the bits of a float: a NaN is larger than an
// infinity.
Scaling ScalingOf(uint32_t largest) {
  constexpr uint32_t kInfinity = 0x7f800000u;
  if (largest >= kInfinity) return {__builtin_nanf(""), 0};
  const float amax = __builtin_bit_cast(float, largest);
  const float inverse = 127.0f / amax;
  if (__builtin_bit_cast(uint32_t, inverse) >= kInfinity) return {0, 0};
  return {amax / 127.0f, inverse};
}

uint32_t LargestMagnitude(const float* x, int64_t n) {
  __m256i largest = _mm256_setzero_si256();
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  for (int64_t i = 0; i < n; i += kLanes) {
    const __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(x + i));
    largest = _mm256_max_epi32(largest, _mm256_and_si256(bits, magnitude));
  }
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(largest),
                            _mm256_extracti128_si256(largest, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
}

__m256i Round(const float* x, __m256 inverse) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
}

// Thirty-two numbers, in order.
__m256i QuantizeBlock(const float* x, float inverse) {
  if (inverse == 0) return _mm256_setzero_si256();
  const __m256 factor = _mm256_set1_ps(inverse);
  const __m256i low =
      _mm256_packs_epi32(Round(x, factor), Round(x + 8, factor));
  const __m256i high =
      _mm256_packs_epi32(Round(x + 16, factor), Round(x + 24, factor));
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high),
                                     _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Sums of the first and the last sixteen numbers.
struct HalfSums {
  int32_t first;
  int32_t last;
};

HalfSums SumsOf(__m256i q) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
  __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
  sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
  return {_mm_cvtsi128_si32(_mm256_castsi256_si128(sums)),
          _mm_cvtsi128_si32(_mm256_extracti128_si256(sums, 1))};
}

void Store(std::byte* out, __m256i q) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), q);
}

void QuantizeQ8_32(const float* x, int64_t k, std::byte* out) {
  float* scale = reinterpret_cast<float*>(out + k);
  int32_t* sum = reinterpret_cast<int32_t*>(out + k + k / 8);
  float* scaled_sum = reinterpret_cast<float*>(out + k + k / 4);
  for (int64_t b = 0; b < k / 32; ++b) {
    const Scaling scaling = ScalingOf(LargestMagnitude(x + 32 * b, 32));
    const __m256i q = QuantizeBlock(x + 32 * b, scaling.inverse);
    Store(out + 32 * b, q);
    const HalfSums sums = SumsOf(q);
    scale[b] = scaling.scale;
    sum[b] = sums.first + sums.last;
    scaled_sum[b] = scaling.scale * static_cast<float>(sum[b]);
  }
}

void QuantizeQ8_256(const float* x, int64_t k, std::byte* out) {
  int16_t* sum16 = reinterpret_cast<int16_t*>(out + k);
  int16_t* sum32 = reinterpret_cast<int16_t*>(out + k + k / 8);
  float* scale = reinterpret_cast<float*>(out + k + k / 8 + k / 16);
  for (int64_t b = 0; b < k / 256; ++b) {
    const Scaling scaling = ScalingOf(LargestMagnitude(x + 256 * b, 256));
    scale[b] = scaling.scale;
    for (int64_t g = 8 * b; g < 8 * b + 8; ++g) {
      const __m256i q = QuantizeBlock(x + 32 * g, scaling.inverse);
      Store(out + 32 * g, q);
      const HalfSums sums = SumsOf(q);
      sum16[2 * g] = static_cast<int16_t>(sums.first);
      sum16[2 * g + 1] = static_cast<int16_t>(sums.last);
      sum32[g] = static_cast<int16_t>(sums.first + sums.last);
    }
  }
}

}  // namespace

void RegisterAvx2Quantize(Ops* ops) {
  ops->quantize[static_cast<size_t>(ActivationFormat::kQ8_32)] = QuantizeQ8_32;
  ops->quantize[static_cast<size_t>(ActivationFormat::kQ8_256)] =
      QuantizeQ8_256;
}

}  // namespace coldstream

#endif  // __AVX2__
