// Tiles of the 256-value blocks with signed numbers: Q3_K (stored plus 4, which
// pair takes away again), Q6_K and IQ4_XS (signed). Block layouts:
// kernels/quant_blocks.h.

#if defined(__AVX2__)

#include "kernels/cpu/avx2/transpose.h"
#include "kernels/quant_blocks.h"

namespace coldstream::avx2 {
namespace {

// Bytes kLow and kHigh of each lane, times 256, as two int16.
template <int kLow, int kHigh>
[[gnu::always_inline]] inline __m256i InHighBytes(__m256i bytes) {
  return _mm256_shuffle_epi8(
      bytes, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                 -1, kLow, -1, kHigh, -1, 4 + kLow, -1, 4 + kHigh, -1, 8 + kLow,
                 -1, 8 + kHigh, -1, 12 + kLow, -1, 12 + kHigh)));
}

// Four signed bytes of each lane, as the scales of groups first..first + 3.
[[gnu::always_inline]] inline void StoreSignedScales(__m256i bytes, int first,
                                                     Tile256* tile) {
  ForFour([&](auto j) {
    constexpr int kJ = decltype(j)::value;
    Store(tile->scale[first + kJ],
          _mm256_srai_epi16(InHighBytes<kJ, kJ>(bytes), 8));
  });
}

// Four signed bytes of each lane, times -4, as two pairs.
[[gnu::always_inline]] inline void StoreOffsets(__m256i bytes, int first_pair,
                                                Tile256* tile) {
  const auto store = [&](int pair, __m256i scaled) {
    Store(tile->pair[pair], _mm256_sub_epi16(_mm256_setzero_si256(),
                                             _mm256_srai_epi16(scaled, 8 - 2)));
  };
  store(first_pair, InHighBytes<0, 1>(bytes));
  store(first_pair + 1, InHighBytes<2, 3>(bytes));
}

}  // namespace

void DecodeQ3_K(const TileSource& source, uint64_t offset, Tile256* tile) {
  const TileSource rows = source;
  // The 16 bytes that end with the block: two of qs, the scales, d.
  __m256i tail[4];
  LoadHalvesOfRows(rows, offset + sizeof(BlockQ3_K) - 16, tail);
  for (int i = 0; i < 4; ++i) tail[i] = _mm256_srli_si256(tail[i], 2);
  TransposeInHalves(tail);
  _mm256_store_ps(tile->d, LowHalves(tail[3]));
  ForFour([&](auto index) {
    constexpr int kJ = decltype(index)::value;
    const __m256i low =
        _mm256_and_si256(ShiftRight<kJ / 2 * 4>(tail[kJ % 2]), Bytes(0x0f));
    const __m256i six =
        OrMasked(low, ShiftRight<2 * kJ - 4>(tail[2]), Bytes(0x30));
    const __m256i scales = _mm256_sub_epi8(six, Bytes(32));
    StoreSignedScales(scales, 4 * kJ, tile);
    StoreOffsets(scales, 2 * kJ, tile);
  });
  const __m256i two = Bytes(3);
  const __m256i third = Bytes(4);
  for (uint64_t part = 0; part < 2; ++part) {  // 16 bytes of every 32
    __m256i high[4];
    Load16Bytes(rows, offset + offsetof(BlockQ3_K, hmask) + 16 * part, high);
    const auto half = [&](auto index) {
      constexpr int kHalf = decltype(index)::value;
      __m256i q[4];
      Load16Bytes(rows,
                  offset + offsetof(BlockQ3_K, qs) + 32 * kHalf + 16 * part, q);
      ForFour([&](auto j) {
        constexpr int kJ = decltype(j)::value;
        uint8_t(*w)[32] = tile->w + 32 * kHalf + 8 * kJ + 4 * part;
        for (int i = 0; i < 4; ++i) {
          const __m256i low = _mm256_and_si256(ShiftRight<2 * kJ>(q[i]), two);
          Store(w[i],
                OrMasked(low, ShiftRight<4 * kHalf + kJ - 2>(high[i]), third));
        }
      });
    };
    half(Constant<0>());
    half(Constant<1>());
  }
}

void DecodeQ6_K(const TileSource& source, uint64_t offset, Tile256* tile) {
  const TileSource rows = source;
  _mm256_store_ps(tile->d, LoadHalf(rows, offset + offsetof(BlockQ6_K, d)));
  __m256i scales[4];
  Load16Bytes(rows, offset + offsetof(BlockQ6_K, scales), scales);
  for (int j = 0; j < 4; ++j) StoreSignedScales(scales[j], 4 * j, tile);
  const __m256i four = Bytes(0x0f);
  const __m256i top = Bytes(0x30);
  const __m256i stored_with = Bytes(32);
  for (uint64_t part = 0; part < 4; ++part) {  // 16 of the 64 bytes of qh
    __m256i high[4];
    Load16Bytes(rows, offset + offsetof(BlockQ6_K, qh) + 16 * part, high);
    const auto quarters = [&](auto index) {  // j and j + 2 of a half
      constexpr int kJ = decltype(index)::value;
      __m256i q[4];
      Load16Bytes(rows, offset + 64 * (part / 2) + 32 * kJ + 16 * (part % 2),
                  q);
      uint8_t(*w)[32] = tile->w + 32 * (part / 2) + 8 * kJ + 4 * (part % 2);
      for (int i = 0; i < 4; ++i) {
        const __m256i low = _mm256_and_si256(q[i], four);
        const __m256i next = _mm256_and_si256(_mm256_srli_epi32(q[i], 4), four);
        Store(w[i], _mm256_sub_epi8(
                        OrMasked(low, ShiftRight<2 * kJ - 4>(high[i]), top),
                        stored_with));
        Store(w[16 + i],
              _mm256_sub_epi8(OrMasked(next, ShiftRight<2 * kJ>(high[i]), top),
                              stored_with));
      }
    };
    quarters(Constant<0>());
    quarters(Constant<1>());
  }
}

void DecodeIQ4_XS(const TileSource& source, uint64_t offset, Tile256* tile) {
  const TileSource rows = source;
  __m256i header[4];
  Load16Bytes(rows, offset, header);
  _mm256_store_ps(tile->d, LowHalves(header[0]));
  const auto store_scale = [&](auto group) {
    constexpr int kGroup = decltype(group)::value;
    const __m256i low = _mm256_and_si256(ShiftRight<4 * kGroup>(header[1]),
                                         _mm256_set1_epi32(15));
    const __m256i six = OrMasked(low, ShiftRight<12 + 2 * kGroup>(header[0]),
                                 _mm256_set1_epi32(0x30));
    const __m256i both = _mm256_or_si256(six, _mm256_slli_epi32(six, 16));
    Store(tile->scale[kGroup], _mm256_sub_epi16(both, _mm256_set1_epi16(32)));
  };
  ForFour([&](auto pair) {
    constexpr int kPair = decltype(pair)::value;
    store_scale(Constant<2 * kPair>());
    store_scale(Constant<2 * kPair + 1>());
  });
  const __m256i table = _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(kIq4Values)));
  const __m256i four = Bytes(0x0f);
  for (uint64_t group = 0; group < 8; ++group) {
    __m256i q[4];
    Load16Bytes(rows, offset + offsetof(BlockIQ4_XS, qs) + 16 * group, q);
    uint8_t(*w)[32] = tile->w + 8 * group;
    for (int i = 0; i < 4; ++i) {
      Store(w[i], _mm256_shuffle_epi8(table, _mm256_and_si256(q[i], four)));
      Store(w[4 + i],
            _mm256_shuffle_epi8(
                table, _mm256_and_si256(_mm256_srli_epi32(q[i], 4), four)));
    }
  }
}

}  // namespace coldstream::avx2

#endif  // __AVX2__
