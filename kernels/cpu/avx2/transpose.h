// Loads from eight weight rows, turned so that lane r belongs to row r, and
// what decoders do with them.
//
// Inlined by force: the arrays are meant to be registers. Internal linkage on
// purpose: every file that includes this has its own copy, compiled with its
// own flags (see register.h).
#ifndef COLDSTREAM_KERNELS_CPU_AVX2_TRANSPOSE_H_
#define COLDSTREAM_KERNELS_CPU_AVX2_TRANSPOSE_H_

#include <immintrin.h>

#include "kernels/cpu/avx2/weight_tile.h"

namespace coldstream::avx2 {
namespace {

// 4x4 blocks of 32-bit numbers, one in each half of the four vectors: element j
// of half h of v[i] becomes element i of half h of v[j].
[[maybe_unused, gnu::always_inline]] inline void TransposeInHalves(
    __m256i v[4]) {
  const __m256i a = _mm256_unpacklo_epi32(v[0], v[1]);
  const __m256i b = _mm256_unpackhi_epi32(v[0], v[1]);
  const __m256i c = _mm256_unpacklo_epi32(v[2], v[3]);
  const __m256i d = _mm256_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm256_unpacklo_epi64(a, c);
  v[1] = _mm256_unpackhi_epi64(a, c);
  v[2] = _mm256_unpacklo_epi64(b, d);
  v[3] = _mm256_unpackhi_epi64(b, d);
}

// 16 bytes of rows i and 4 + i in the halves of out[i], not yet transposed.
[[maybe_unused, gnu::always_inline]] inline void LoadHalvesOfRows(
    const TileSource& rows, uint64_t offset, __m256i out[4]) {
  const auto load = [&rows, offset](int r) {
    return _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(rows.row[r] + offset));
  };
  for (int i = 0; i < 4; ++i) {
    out[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load(i)),
                                     load(4 + i), 1);
  }
}

// out[j] = the 32-bit numbers at byte offset + 4 j of all rows; 4 of them.
[[maybe_unused, gnu::always_inline]] inline void Load16Bytes(
    const TileSource& rows, uint64_t offset, __m256i out[4]) {
  LoadHalvesOfRows(rows, offset, out);
  TransposeInHalves(out);
}

// The same for 8 numbers.
[[maybe_unused, gnu::always_inline]] inline void Load32Bytes(
    const TileSource& rows, uint64_t offset, __m256i out[8]) {
  Load16Bytes(rows, offset, out);
  Load16Bytes(rows, offset + 16, out + 4);
}

// One 32-bit number a row.
[[maybe_unused, gnu::always_inline]] inline __m256i Load4Bytes(
    const TileSource& rows, uint64_t offset) {
  const auto at = [&rows, offset](int r) {
    int32_t value;
    __builtin_memcpy(&value, rows.row[r] + offset, sizeof(value));
    return value;
  };
  return _mm256_setr_epi32(at(0), at(1), at(2), at(3), at(4), at(5), at(6),
                           at(7));
}

// One F16 a row, widened.
[[maybe_unused, gnu::always_inline]] inline __m256 LoadHalf(
    const TileSource& rows, uint64_t offset) {
  const auto at = [&rows, offset](int r) {
    int16_t bits;
    __builtin_memcpy(&bits, rows.row[r] + offset, sizeof(bits));
    return bits;
  };
  return _mm256_cvtph_ps(
      _mm_setr_epi16(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)));
}

// The low F16 of each lane, widened.
[[maybe_unused, gnu::always_inline]] inline __m256 LowHalves(__m256i v) {
  const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
  return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(low),
                                          _mm256_extracti128_si256(low, 1)));
}
[[maybe_unused, gnu::always_inline]] inline __m256 HighHalves(__m256i v) {
  return LowHalves(_mm256_srli_epi32(v, 16));
}

[[maybe_unused, gnu::always_inline]] inline __m256i Bytes(int value) {
  return _mm256_set1_epi8(static_cast<char>(value));
}

// (high & mask) | low.
[[maybe_unused, gnu::always_inline]] inline __m256i OrMasked(__m256i low,
                                                             __m256i high,
                                                             __m256i mask) {
  return _mm256_or_si256(low, _mm256_and_si256(high, mask));
}

// v moved right by `bits`, left if they are negative.
template <int kBits>
[[gnu::always_inline]] inline __m256i ShiftRight(__m256i v) {
  if constexpr (kBits >= 0)
    return _mm256_srli_epi32(v, kBits);
  else
    return _mm256_slli_epi32(v, -kBits);
}

[[maybe_unused, gnu::always_inline]] inline void Store(void* p, __m256i v) {
  _mm256_store_si256(static_cast<__m256i*>(p), v);
}

// A number as a type, for loops unrolled by hand: shifts by a variable take
// another instruction.
template <int kValue>
struct Constant {
  static constexpr int value = kValue;
};
// body(Constant<0>()) .. body(Constant<3>()).
template <typename Body>
[[gnu::always_inline]] inline void ForFour(Body body) {
  body(Constant<0>());
  body(Constant<1>());
  body(Constant<2>());
  body(Constant<3>());
}

}  // namespace
}  // namespace coldstream::avx2

#endif  // COLDSTREAM_KERNELS_CPU_AVX2_TRANSPOSE_H_
