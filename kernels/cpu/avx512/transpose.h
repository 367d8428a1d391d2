// Loads from sixteen weight rows, turned so that lane r belongs to row r.
//
// Inlined by force: the arrays are meant to be registers, and both compilers
// would rather call.
//
// Internal linkage on purpose: every file that includes this has its own copy,
// compiled with its own flags (see register.h).
#ifndef COLDSTREAM_KERNELS_CPU_AVX512_TRANSPOSE_H_
#define COLDSTREAM_KERNELS_CPU_AVX512_TRANSPOSE_H_

#include <immintrin.h>

#include "kernels/cpu/avx512/weight_tile.h"

namespace coldstream::avx512 {
namespace {

// 4x4 blocks of 32-bit numbers, one in each 128-bit lane of the four vectors:
// element j of lane l of v[i] becomes element i of lane l of v[j].
[[maybe_unused, gnu::always_inline]] inline void TransposeInLanes(
    __m512i v[4]) {
  const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]);
  const __m512i b = _mm512_unpackhi_epi32(v[0], v[1]);
  const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]);
  const __m512i d = _mm512_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm512_unpacklo_epi64(a, c);
  v[1] = _mm512_unpackhi_epi64(a, c);
  v[2] = _mm512_unpacklo_epi64(b, d);
  v[3] = _mm512_unpackhi_epi64(b, d);
}

// 16 bytes of four rows, one in each 128-bit lane.
[[maybe_unused, gnu::always_inline]] inline __m512i FourRows(
    const std::byte* r0, const std::byte* r1, const std::byte* r2,
    const std::byte* r3) {
  const auto load = [](const std::byte* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  };
  __m512i v = _mm512_castsi128_si512(load(r0));
  v = _mm512_inserti32x4(v, load(r1), 1);
  v = _mm512_inserti32x4(v, load(r2), 2);
  return _mm512_inserti32x4(v, load(r3), 3);
}

// 32 bytes of two rows.
[[maybe_unused, gnu::always_inline]] inline __m512i TwoRows(
    const std::byte* low, const std::byte* high) {
  const auto load = [](const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  };
  return _mm512_inserti64x4(_mm512_castsi256_si512(load(low)), load(high), 1);
}

// out[j] = the 32-bit numbers at byte offset + 4 j of all rows; 4 of them.
[[maybe_unused, gnu::always_inline]] inline void Load16Bytes(
    const TileSource& rows, uint64_t offset, __m512i out[4]) {
  for (int i = 0; i < 4; ++i) {
    out[i] = FourRows(rows.row[i] + offset, rows.row[4 + i] + offset,
                      rows.row[8 + i] + offset, rows.row[12 + i] + offset);
  }
  TransposeInLanes(out);
}

// The same for 8 numbers.
[[maybe_unused, gnu::always_inline]] inline void Load32Bytes(
    const TileSource& rows, uint64_t offset, __m512i out[8]) {
  __m512i a[4];
  __m512i b[4];
  for (int i = 0; i < 4; ++i) {
    a[i] = TwoRows(rows.row[i] + offset, rows.row[4 + i] + offset);
    b[i] = TwoRows(rows.row[8 + i] + offset, rows.row[12 + i] + offset);
  }
  TransposeInLanes(a);
  TransposeInLanes(b);
  for (int j = 0; j < 4; ++j) {
    out[j] = _mm512_shuffle_i64x2(a[j], b[j], 0x88);
    out[4 + j] = _mm512_shuffle_i64x2(a[j], b[j], 0xdd);
  }
}

// One 32-bit number a row.
[[maybe_unused, gnu::always_inline]] inline __m512i Load4Bytes(
    const TileSource& rows, uint64_t offset) {
  const auto half = [&](int first) {
    const __m512i addresses =
        _mm512_loadu_si512(reinterpret_cast<const void*>(rows.row + first));
    return _mm512_i64gather_epi32(addresses,
                                  reinterpret_cast<const void*>(offset), 1);
  };
  return _mm512_inserti64x4(_mm512_castsi256_si512(half(0)), half(8), 1);
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

// Asks for cache lines [first, last) of each stream of the rows ahead, counted
// from where the block at `offset` has its share.
[[maybe_unused, gnu::always_inline]] inline void PrefetchLines(
    const TileSource& rows, uint64_t offset, int first, int last) {
  const char* start = reinterpret_cast<const char*>(rows.ahead) +
                      kTileRows / kAheadStreams * offset;
  for (int line = first; line < last; ++line) {
    for (uint64_t s = 0; s < kAheadStreams; ++s)
      _mm_prefetch(start + s * rows.ahead_stride + 64 * line, _MM_HINT_T0);
  }
}

// Lines of a stream that stand for n bytes of each row.
constexpr int LinesOf(int n) {
  return (kTileRows / kAheadStreams * n + 63) / 64;
}

// Part kPart of kParts of the lines of a block of kBytes. Spread over a
// decoder, so that the requests do not queue up before its own loads.
template <int kBytes, int kPart, int kParts>
[[gnu::always_inline]] inline void PrefetchAhead(const TileSource& rows,
                                                 uint64_t offset) {
  PrefetchLines(rows, offset, LinesOf(kBytes) * kPart / kParts,
                LinesOf(kBytes) * (kPart + 1) / kParts);
}

// The low F16 of each lane, widened.
[[maybe_unused, gnu::always_inline]] inline __m512 LowHalves(__m512i v) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}
[[maybe_unused, gnu::always_inline]] inline __m512 HighHalves(__m512i v) {
  return LowHalves(_mm512_srli_epi32(v, 16));
}

[[maybe_unused, gnu::always_inline]] inline __m512i Bytes(int value) {
  return _mm512_set1_epi8(static_cast<char>(value));
}

// v moved right by `bits`, left if they are negative.
template <int kBits>
[[gnu::always_inline]] inline __m512i ShiftRight(__m512i v) {
  if constexpr (kBits >= 0)
    return _mm512_srli_epi32(v, kBits);
  else
    return _mm512_slli_epi32(v, -kBits);
}

// (a & mask) | b.
[[maybe_unused, gnu::always_inline]] inline __m512i OrMasked(__m512i b,
                                                             __m512i a,
                                                             __m512i mask) {
  return _mm512_ternarylogic_epi32(a, mask, b, 0xea);
}

}  // namespace
}  // namespace coldstream::avx512

#endif  // COLDSTREAM_KERNELS_CPU_AVX512_TRANSPOSE_H_
