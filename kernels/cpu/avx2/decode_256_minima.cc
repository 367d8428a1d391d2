// Tiles of the K-quants with minima: Q2_K, Q4_K, Q5_K. Block layouts:
// kernels/quant_blocks.h.

#if defined(__AVX2__)

#include "kernels/cpu/avx2/transpose.h"
#include "kernels/quant_blocks.h"

namespace coldstream::avx2 {
namespace {

// Bytes kLow and kHigh of each lane, as two int16.
template <int kLow, int kHigh>
[[gnu::always_inline]] inline __m256i Widen(__m256i bytes) {
  return _mm256_shuffle_epi8(
      bytes, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                 kLow, -1, kHigh, -1, 4 + kLow, -1, 4 + kHigh, -1, 8 + kLow, -1,
                 8 + kHigh, -1, 12 + kLow, -1, 12 + kHigh, -1)));
}

// Four bytes of each lane, as the scales of groups first..first + 3.
[[gnu::always_inline]] inline void StoreScales(__m256i bytes, int first,
                                               Tile256* tile) {
  ForFour([&](auto j) {
    constexpr int kJ = decltype(j)::value;
    Store(tile->scale[first + kJ], Widen<kJ, kJ>(bytes));
  });
}

// Four bytes of each lane, as two pairs of minima.
[[gnu::always_inline]] inline void StoreMinima(__m256i bytes, int first_pair,
                                               Tile256* tile) {
  Store(tile->pair[first_pair], Widen<0, 1>(bytes));
  Store(tile->pair[first_pair + 1], Widen<2, 3>(bytes));
}

[[gnu::always_inline]] inline void StoreHalves(__m256i d_and_dmin,
                                               Tile256* tile) {
  _mm256_store_ps(tile->d, LowHalves(d_and_dmin));
  _mm256_store_ps(tile->dmin, HighHalves(d_and_dmin));
}

// The first 16 bytes of Q4_K and Q5_K: d, dmin, and 6-bit scales and minima.
[[gnu::always_inline]] inline void DecodeHeader(const TileSource& rows,
                                                uint64_t offset,
                                                Tile256* tile) {
  __m256i header[4];
  Load16Bytes(rows, offset, header);
  StoreHalves(header[0], tile);
  const __m256i six = Bytes(0x3f);
  const __m256i four = Bytes(0x0f);
  const __m256i top = Bytes(0x30);
  StoreScales(_mm256_and_si256(header[1], six), 0, tile);
  StoreMinima(_mm256_and_si256(header[2], six), 0, tile);
  StoreScales(OrMasked(_mm256_and_si256(header[3], four),
                       _mm256_srli_epi32(header[1], 2), top),
              4, tile);
  StoreMinima(OrMasked(_mm256_and_si256(_mm256_srli_epi32(header[3], 4), four),
                       _mm256_srli_epi32(header[2], 2), top),
              2, tile);
}

}  // namespace

void DecodeQ2_K(const TileSource& source, uint64_t offset, Tile256* tile) {
  const TileSource rows = source;
  StoreHalves(Load4Bytes(rows, offset + offsetof(BlockQ2_K, d)), tile);
  const __m256i four = Bytes(0x0f);
  __m256i scales[4];
  Load16Bytes(rows, offset, scales);
  for (int j = 0; j < 4; ++j) {
    StoreScales(_mm256_and_si256(scales[j], four), 4 * j, tile);
    StoreMinima(_mm256_and_si256(_mm256_srli_epi32(scales[j], 4), four), 2 * j,
                tile);
  }
  const __m256i two = Bytes(3);
  for (int part = 0; part < 4; ++part) {  // 16 bytes, half a half
    __m256i q[4];
    Load16Bytes(
        rows,
        offset + offsetof(BlockQ2_K, qs) + 16 * static_cast<uint64_t>(part), q);
    uint8_t(*w)[32] = tile->w + 32 * (part / 2) + 4 * (part % 2);
    ForFour([&](auto j) {
      constexpr int kJ = decltype(j)::value;
      for (int i = 0; i < 4; ++i)
        Store(w[8 * kJ + i], _mm256_and_si256(ShiftRight<2 * kJ>(q[i]), two));
    });
  }
}

void DecodeQ4_K(const TileSource& source, uint64_t offset, Tile256* tile) {
  const TileSource rows = source;
  DecodeHeader(rows, offset, tile);
  const __m256i four = Bytes(0x0f);
  for (int part = 0; part < 8; ++part) {  // half of two groups
    __m256i q[4];
    Load16Bytes(
        rows,
        offset + offsetof(BlockQ4_K, qs) + 16 * static_cast<uint64_t>(part), q);
    uint8_t(*w)[32] = tile->w + 16 * (part / 2) + 4 * (part % 2);
    for (int i = 0; i < 4; ++i) {
      Store(w[i], _mm256_and_si256(q[i], four));
      Store(w[8 + i], _mm256_and_si256(_mm256_srli_epi32(q[i], 4), four));
    }
  }
}

void DecodeQ5_K(const TileSource& source, uint64_t offset, Tile256* tile) {
  const TileSource rows = source;
  DecodeHeader(rows, offset, tile);
  const __m256i four = Bytes(0x0f);
  const __m256i fifth = Bytes(0x10);
  for (uint64_t half = 0; half < 2; ++half) {  // of every group
    __m256i high[4];  // bit g of a byte is the fifth bit of group g
    Load16Bytes(rows, offset + offsetof(BlockQ5_K, qh) + 16 * half, high);
    ForFour([&](auto part) {  // groups 2 * part and 2 * part + 1
      constexpr int kPart = decltype(part)::value;
      __m256i q[4];
      Load16Bytes(rows,
                  offset + offsetof(BlockQ5_K, qs) + 32 * kPart + 16 * half, q);
      uint8_t(*w)[32] = tile->w + 16 * kPart + 4 * half;
      for (int i = 0; i < 4; ++i) {
        const __m256i low = _mm256_and_si256(q[i], four);
        const __m256i next = _mm256_and_si256(_mm256_srli_epi32(q[i], 4), four);
        Store(w[i], OrMasked(low, ShiftRight<2 * kPart - 4>(high[i]), fifth));
        Store(w[8 + i],
              OrMasked(next, ShiftRight<2 * kPart - 3>(high[i]), fifth));
      }
    });
  }
}

}  // namespace coldstream::avx2

#endif  // __AVX2__
