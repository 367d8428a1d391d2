// Tiles of the 256-value blocks with signed numbers: Q3_K, Q6_K, IQ4_XS. A
// number is stored plus an offset that makes it unsigned; pair takes it away
// again. Block layouts: kernels/quant_blocks.h.

#if defined(__AVX512F__)

#include "kernels/cpu/avx512/transpose.h"
#include "kernels/quant_blocks.h"

namespace coldstream::avx512 {
namespace {

// Scale vectors of groups 2p and 2p + 1, and their pair for the offset.
[[gnu::always_inline]] inline void StoreScalePair(__m512i even, __m512i odd,
                                                  int p, int offset,
                                                  Tile256* tile) {
  _mm512_store_si512(tile->scale[2 * p], even);
  _mm512_store_si512(tile->scale[2 * p + 1], odd);
  const __m512i both =
      _mm512_mask_blend_epi16(0xaaaaaaaau, even, _mm512_slli_epi32(odd, 16));
  _mm512_store_si512(
      tile->pair[p],
      _mm512_mullo_epi16(both, _mm512_set1_epi16(static_cast<short>(-offset))));
}

// Four signed bytes of each lane, as the scales of groups first..first + 3.
[[gnu::always_inline]] inline void StoreSignedScales(__m512i bytes, int first,
                                                     int offset,
                                                     Tile256* tile) {
  const __m512i s0 = _mm512_srai_epi32(_mm512_slli_epi32(bytes, 24), 24);
  const __m512i s1 = _mm512_srai_epi32(_mm512_slli_epi32(bytes, 16), 24);
  const __m512i s2 = _mm512_srai_epi32(_mm512_slli_epi32(bytes, 8), 24);
  const __m512i s3 = _mm512_srai_epi32(bytes, 24);
  StoreScalePair(s0, s1, first / 2, offset, tile);
  StoreScalePair(s2, s3, first / 2 + 1, offset, tile);
}

}  // namespace

void DecodeQ6_K(const TileSource& rows, uint64_t offset, Tile256* tile) {
  // d is the last member: the four bytes that end with it.
  _mm512_store_ps(tile->d, HighHalves(Load4Bytes(
                               rows, offset + offsetof(BlockQ6_K, d) - 2)));
  __m512i scales[4];
  Load16Bytes(rows, offset + offsetof(BlockQ6_K, scales), scales);
  for (int j = 0; j < 4; ++j) StoreSignedScales(scales[j], 4 * j, 32, tile);
  const __m512i four = Bytes(0x0f);
  const __m512i top = Bytes(0x30);
  const auto half = [&](auto index) {
    constexpr int kHalf = decltype(index)::value;
    __m512i high[8];
    Load32Bytes(rows, offset + offsetof(BlockQ6_K, qh) + 32 * kHalf, high);
    const auto part = [&](auto of_half) {
      constexpr int kPart = decltype(of_half)::value;
      __m512i q[8];
      Load32Bytes(rows, offset + 64 * kHalf + 32 * kPart, q);
      PrefetchAhead<sizeof(BlockQ6_K), 2 * kHalf + kPart, 4>(rows, offset);
      uint8_t(*w)[64] = tile->w + 32 * kHalf + 8 * kPart;
      for (int i = 0; i < 8; ++i) {
        const __m512i low = _mm512_and_si512(q[i], four);
        const __m512i next = _mm512_and_si512(_mm512_srli_epi32(q[i], 4), four);
        _mm512_store_si512(
            w[i], OrMasked(low, ShiftRight<2 * kPart - 4>(high[i]), top));
        _mm512_store_si512(w[16 + i],
                           OrMasked(next, ShiftRight<2 * kPart>(high[i]), top));
      }
    };
    part(Constant<0>());
    part(Constant<1>());
  };
  half(Constant<0>());
  half(Constant<1>());
}

void DecodeQ3_K(const TileSource& rows, uint64_t offset, Tile256* tile) {
  // The 16 bytes that end with the block: two of qs, the scales, d.
  __m512i tail[4];
  for (int i = 0; i < 4; ++i) {
    const uint64_t at = offset + sizeof(BlockQ3_K) - 16;
    tail[i] = _mm512_bsrli_epi128(
        FourRows(rows.row[i] + at, rows.row[4 + i] + at, rows.row[8 + i] + at,
                 rows.row[12 + i] + at),
        2);
  }
  TransposeInLanes(tail);
  _mm512_store_ps(tile->d, LowHalves(tail[3]));
  ForFour([&](auto index) {
    constexpr int kJ = decltype(index)::value;
    const __m512i low =
        _mm512_and_si512(ShiftRight<kJ / 2 * 4>(tail[kJ % 2]), Bytes(0x0f));
    const __m512i six =
        OrMasked(low, ShiftRight<2 * kJ - 4>(tail[2]), Bytes(0x30));
    StoreSignedScales(_mm512_sub_epi8(six, Bytes(32)), 4 * kJ, 4, tile);
  });
  const __m512i two = Bytes(3);
  const __m512i third = Bytes(4);
  __m512i high[8];
  Load32Bytes(rows, offset, high);
  const auto half = [&](auto index) {
    constexpr int kHalf = decltype(index)::value;
    __m512i q[8];
    Load32Bytes(rows, offset + offsetof(BlockQ3_K, qs) + 32 * kHalf, q);
    ForFour([&](auto j) {
      constexpr int kJ = decltype(j)::value;
      PrefetchAhead<sizeof(BlockQ3_K), 4 * kHalf + kJ, 8>(rows, offset);
      uint8_t(*w)[64] = tile->w + 32 * kHalf + 8 * kJ;
      for (int i = 0; i < 8; ++i) {
        const __m512i low = _mm512_and_si512(ShiftRight<2 * kJ>(q[i]), two);
        _mm512_store_si512(
            w[i],
            OrMasked(low, ShiftRight<4 * kHalf + kJ - 2>(high[i]), third));
      }
    });
  };
  half(Constant<0>());
  half(Constant<1>());
}

void DecodeIQ4_XS(const TileSource& rows, uint64_t offset, Tile256* tile) {
  __m512i header[4];
  Load16Bytes(rows, offset, header);
  _mm512_store_ps(tile->d, LowHalves(header[0]));
  const auto scale = [&](auto group) {
    constexpr int kGroup = decltype(group)::value;
    const __m512i low = _mm512_and_si512(ShiftRight<4 * kGroup>(header[1]),
                                         _mm512_set1_epi32(15));
    return _mm512_sub_epi32(
        OrMasked(low, ShiftRight<12 + 2 * kGroup>(header[0]),
                 _mm512_set1_epi32(0x30)),
        _mm512_set1_epi32(32));
  };
  ForFour([&](auto pair) {
    constexpr int kPair = decltype(pair)::value;
    StoreScalePair(scale(Constant<2 * kPair>()),
                   scale(Constant<2 * kPair + 1>()), kPair, 128, tile);
  });
  const __m512i table = _mm512_xor_si512(
      _mm512_broadcast_i32x4(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(kIq4Values))),
      Bytes(0x80));
  const __m512i four = Bytes(0x0f);
  ForFour([&](auto part) {  // two groups
    constexpr int kPart = decltype(part)::value;
    __m512i q[8];
    Load32Bytes(rows, offset + offsetof(BlockIQ4_XS, qs) + 32 * kPart, q);
    PrefetchAhead<sizeof(BlockIQ4_XS), kPart, 4>(rows, offset);
    for (int i = 0; i < 8; ++i) {
      uint8_t(*w)[64] = tile->w + 16 * kPart + 8 * (i / 4) + i % 4;
      _mm512_store_si512(
          w[0], _mm512_shuffle_epi8(table, _mm512_and_si512(q[i], four)));
      _mm512_store_si512(
          w[4], _mm512_shuffle_epi8(
                    table, _mm512_and_si512(_mm512_srli_epi32(q[i], 4), four)));
    }
  });
}

}  // namespace coldstream::avx512

#endif  // __AVX512F__
