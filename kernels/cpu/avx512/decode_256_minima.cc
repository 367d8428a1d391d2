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
[[gnu::always_inline]] inline void DecodeHeader(const TileRowPointers& rows,
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

void DecodeQ4_K(const TileRowPointers& rows, uint64_t offset, Tile256* tile) {
  DecodeHeader(rows, offset, tile);
  const __m512i four = Bytes(0x0f);
  for (int part = 0; part < 4; ++part) {  // two groups
    __m512i q[8];
    Load32Bytes(
        rows,
        offset + offsetof(BlockQ4_K, qs) + static_cast<uint64_t>(32 * part), q);
    uint8_t(*w)[64] = tile->w + 16 * part;
    for (int i = 0; i < 8; ++i) {
      _mm512_store_si512(w[i], _mm512_and_si512(q[i], four));
      _mm512_store_si512(w[8 + i],
                         _mm512_and_si512(_mm512_srli_epi32(q[i], 4), four));
    }
  }
}

void DecodeQ5_K(const TileRowPointers& rows, uint64_t offset, Tile256* tile) {
  DecodeHeader(rows, offset, tile);
  const __m512i four = Bytes(0x0f);
  const __m512i fifth = Bytes(0x10);
  __m512i high[8];  // bit g + 4 of a byte is the fifth bit of group g, g < 4
  Load32Bytes(rows, offset + offsetof(BlockQ5_K, qh), high);
  for (unsigned part = 0; part < 4; ++part) {
    __m512i q[8];
    Load32Bytes(rows, offset + offsetof(BlockQ5_K, qs) + 32 * part, q);
    uint8_t(*w)[64] = tile->w + 16 * part;
    for (int i = 0; i < 8; ++i) {
      // Groups 2 * part and 2 * part + 1; the shifts are constants once the
      // loops are unrolled.
      const __m512i even = part < 2 ? _mm512_slli_epi32(high[i], 4 - 2 * part)
                                    : _mm512_srli_epi32(high[i], 2 * part - 4);
      const __m512i odd = part < 2 ? _mm512_slli_epi32(high[i], 3 - 2 * part)
                                   : _mm512_srli_epi32(high[i], 2 * part - 3);
      _mm512_store_si512(w[i],
                         OrMasked(_mm512_and_si512(q[i], four), even, fifth));
      _mm512_store_si512(
          w[8 + i], OrMasked(_mm512_and_si512(_mm512_srli_epi32(q[i], 4), four),
                             odd, fifth));
    }
  }
}

void DecodeQ2_K(const TileRowPointers& rows, uint64_t offset, Tile256* tile) {
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
  for (int half = 0; half < 2; ++half) {
    __m512i q[8];
    Load32Bytes(
        rows,
        offset + offsetof(BlockQ2_K, qs) + static_cast<uint64_t>(32 * half), q);
    for (unsigned j = 0; j < 4; ++j) {
      uint8_t(*w)[64] = tile->w + 32 * half + 8 * j;
      for (int i = 0; i < 8; ++i) {
        _mm512_store_si512(
            w[i], _mm512_and_si512(_mm512_srli_epi32(q[i], 2 * j), two));
      }
    }
  }
}

}  // namespace coldstream::avx512

#endif  // __AVX512F__
