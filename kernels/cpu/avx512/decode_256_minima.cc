// Tiles of the K-quants with minima: Q2_K, Q4_K, Q5_K. Block layouts:
// kernels/quant_blocks.h.

#if defined(__AVX512F__)

#include "kernels/cpu/avx512/transpose.h"
#include "kernels/quant_blocks.h"

namespace coldstream::avx512 {
namespace {

// Four bytes of each lane, as the scales of groups first..first + 3.
[[gnu::always_inline]] inline void StoreScales(__m512i bytes, int first,
                                               Tile256* tile) {
  const __m512i low = _mm512_set1_epi32(255);
  for (int j = 0; j < 4; ++j) {
    _mm512_store_si512(
        tile->scale[first + j],
        _mm512_and_si512(_mm512_srli_epi32(bytes, static_cast<unsigned>(8 * j)),
                         low));
  }
}

// Four bytes of each lane, as two pairs of minima.
[[gnu::always_inline]] inline void StoreMinima(__m512i bytes, int first_pair,
                                               Tile256* tile) {
  // In 16-bit pairs (b0, b1) and (b2, b3): byte shuffles within lanes.
  const __m512i low = _mm512_broadcast_i32x4(
      _mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1));
  const __m512i high = _mm512_broadcast_i32x4(_mm_setr_epi8(
      2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1));
  _mm512_store_si512(tile->pair[first_pair], _mm512_shuffle_epi8(bytes, low));
  _mm512_store_si512(tile->pair[first_pair + 1],
                     _mm512_shuffle_epi8(bytes, high));
}

[[gnu::always_inline]] inline void StoreHalves(__m512i d_and_dmin,
                                               Tile256* tile) {
  _mm512_store_ps(tile->d, LowHalves(d_and_dmin));
  _mm512_store_ps(tile->dmin, HighHalves(d_and_dmin));
}

// The first 16 bytes of Q4_K and Q5_K: d, dmin, and 6-bit scales and minima.
[[gnu::always_inline]] inline void DecodeHeader(const TileSource& rows,
                                                uint64_t offset,
                                                Tile256* tile) {
  __m512i header[4];
  Load16Bytes(rows, offset, header);
  StoreHalves(header[0], tile);
  const __m512i six = Bytes(0x3f);
  const __m512i four = Bytes(0x0f);
  const __m512i top = Bytes(0x30);
  StoreScales(_mm512_and_si512(header[1], six), 0, tile);
  StoreMinima(_mm512_and_si512(header[2], six), 0, tile);
  StoreScales(OrMasked(_mm512_and_si512(header[3], four),
                       _mm512_srli_epi32(header[1], 2), top),
              4, tile);
  StoreMinima(OrMasked(_mm512_and_si512(_mm512_srli_epi32(header[3], 4), four),
                       _mm512_srli_epi32(header[2], 2), top),
              2, tile);
}

}  // namespace

void DecodeQ4_K(const TileSource& rows, uint64_t offset, Tile256* tile) {
  DecodeHeader(rows, offset, tile);
  const __m512i four = Bytes(0x0f);
  ForFour([&](auto part) {  // two groups
    constexpr int kPart = decltype(part)::value;
    __m512i q[8];
    Load32Bytes(rows, offset + offsetof(BlockQ4_K, qs) + 32 * kPart, q);
    PrefetchAhead<sizeof(BlockQ4_K), kPart, 4>(rows, offset);
    uint8_t(*w)[64] = tile->w + 16 * kPart;
    for (int i = 0; i < 8; ++i) {
      _mm512_store_si512(w[i], _mm512_and_si512(q[i], four));
      _mm512_store_si512(w[8 + i],
                         _mm512_and_si512(_mm512_srli_epi32(q[i], 4), four));
    }
  });
}

void DecodeQ5_K(const TileSource& rows, uint64_t offset, Tile256* tile) {
  DecodeHeader(rows, offset, tile);
  const __m512i four = Bytes(0x0f);
  const __m512i fifth = Bytes(0x10);
  __m512i high[8];  // bit g of a byte is the fifth bit of group g
  Load32Bytes(rows, offset + offsetof(BlockQ5_K, qh), high);
  ForFour([&](auto part) {  // groups 2 * part and 2 * part + 1
    constexpr int kPart = decltype(part)::value;
    __m512i q[8];
    Load32Bytes(rows, offset + offsetof(BlockQ5_K, qs) + 32 * kPart, q);
    PrefetchAhead<sizeof(BlockQ5_K), kPart, 4>(rows, offset);
    uint8_t(*w)[64] = tile->w + 16 * kPart;
    for (int i = 0; i < 8; ++i) {
      const __m512i low = _mm512_and_si512(q[i], four);
      const __m512i next = _mm512_and_si512(_mm512_srli_epi32(q[i], 4), four);
      _mm512_store_si512(
          w[i], OrMasked(low, ShiftRight<2 * kPart - 4>(high[i]), fifth));
      _mm512_store_si512(
          w[8 + i], OrMasked(next, ShiftRight<2 * kPart - 3>(high[i]), fifth));
    }
  });
}

void DecodeQ2_K(const TileSource& rows, uint64_t offset, Tile256* tile) {
  StoreHalves(Load4Bytes(rows, offset + offsetof(BlockQ2_K, d)), tile);
  const __m512i four = Bytes(0x0f);
  __m512i scales[4];
  Load16Bytes(rows, offset, scales);
  for (int j = 0; j < 4; ++j) {
    StoreScales(_mm512_and_si512(scales[j], four), 4 * j, tile);
    StoreMinima(_mm512_and_si512(_mm512_srli_epi32(scales[j], 4), four), 2 * j,
                tile);
  }
  const __m512i two = Bytes(3);
  const auto half = [&](auto index) {
    constexpr int kHalf = decltype(index)::value;
    __m512i q[8];
    Load32Bytes(rows, offset + offsetof(BlockQ2_K, qs) + 32 * kHalf, q);
    ForFour([&](auto j) {
      constexpr int kJ = decltype(j)::value;
      PrefetchAhead<sizeof(BlockQ2_K), 4 * kHalf + kJ, 8>(rows, offset);
      uint8_t(*w)[64] = tile->w + 32 * kHalf + 8 * kJ;
      for (int i = 0; i < 8; ++i) {
        _mm512_store_si512(w[i],
                           _mm512_and_si512(ShiftRight<2 * kJ>(q[i]), two));
      }
    });
  };
  half(Constant<0>());
  half(Constant<1>());
}

}  // namespace coldstream::avx512

#endif  // __AVX512F__
