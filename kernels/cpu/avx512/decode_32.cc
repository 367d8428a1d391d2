// Tiles of the 32-value blocks. A signed number is stored plus an offset that
// makes it unsigned. Block layouts: kernels/quant_blocks.h.

#if defined(__AVX512F__)

#include "kernels/cpu/avx512/transpose.h"
#include "kernels/quant_blocks.h"

namespace coldstream::avx512 {
namespace {

// 32 four-bit numbers of each row.
[[gnu::always_inline]] inline void LoadNibbles(const TileRowPointers& rows,
                                               uint64_t offset,
                                               __m512i out[8]) {
  const __m512i four = Bytes(0x0f);
  __m512i q[4];
  Load16Bytes(rows, offset, q);
  for (int i = 0; i < 4; ++i) {
    out[i] = _mm512_and_si512(q[i], four);
    out[4 + i] = _mm512_and_si512(_mm512_srli_epi32(q[i], 4), four);
  }
}

// Adds the fifth bits: bit i of a row's `high` to number i.
[[gnu::always_inline]] inline void AddFifthBits(__m512i high, __m512i q[8]) {
  const __m512i fifth = Bytes(0x10);
  const __m512i even = _mm512_set1_epi32(0x08040201);
  const __m512i odd = _mm512_set1_epi32(static_cast<int>(0x80402010u));
  const __m512i bytes_of_row = _mm512_broadcast_i32x4(
      _mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
  for (int i = 0; i < 4; ++i) {
    const __m512i byte =
        _mm512_shuffle_epi8(high, _mm512_add_epi8(bytes_of_row, Bytes(i)));
    q[2 * i] = _mm512_mask_add_epi8(q[2 * i], _mm512_test_epi8_mask(byte, even),
                                    q[2 * i], fifth);
    q[2 * i + 1] = _mm512_mask_add_epi8(
        q[2 * i + 1], _mm512_test_epi8_mask(byte, odd), q[2 * i + 1], fifth);
  }
}

[[gnu::always_inline]] inline void Store(const __m512i q[8], int block,
                                         Tile32* tile) {
  for (int i = 0; i < 8; ++i) _mm512_store_si512(tile->w[8 * block + i], q[i]);
}

// Calls decode(offset of the block, block) for each block.
template <typename Block, typename Decode>
[[gnu::always_inline]] inline void ForBlocks(uint64_t offset, int blocks,
                                             Decode decode) {
  for (int b = 0; b < blocks; ++b)
    decode(offset + static_cast<uint64_t>(b) * sizeof(Block), b);
}

// 4-bit numbers that index a table of signed values.
template <typename Block>
[[gnu::always_inline]] inline void DecodeTable(const TileRowPointers& rows,
                                               uint64_t offset, int blocks,
                                               const int8_t* values, int plus,
                                               Tile32* tile) {
  const __m512i table = _mm512_add_epi8(
      _mm512_broadcast_i32x4(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(values))),
      Bytes(plus));
  ForBlocks<Block>(
      offset, blocks, [&](uint64_t at, int b) __attribute__((always_inline)) {
        __m512i q[8];
        LoadNibbles(rows, at + offsetof(Block, qs), q);
        for (__m512i& v : q) v = _mm512_shuffle_epi8(table, v);
        Store(q, b, tile);
      });
}

}  // namespace

void DecodeQ8_0(const TileRowPointers& rows, uint64_t offset, int blocks,
                Tile32* tile) {
  ForBlocks<BlockQ8_0>(
      offset, blocks, [&](uint64_t at, int b) __attribute__((always_inline)) {
        _mm512_store_ps(tile->d[b], LowHalves(Load4Bytes(rows, at)));
        __m512i q[8];
        Load32Bytes(rows, at + offsetof(BlockQ8_0, qs), q);
        for (__m512i& v : q) v = _mm512_xor_si512(v, Bytes(0x80));
        Store(q, b, tile);
      });
}

void DecodeQ4_0(const TileRowPointers& rows, uint64_t offset, int blocks,
                Tile32* tile) {
  ForBlocks<BlockQ4_0>(
      offset, blocks, [&](uint64_t at, int b) __attribute__((always_inline)) {
        _mm512_store_ps(tile->d[b], LowHalves(Load4Bytes(rows, at)));
        __m512i q[8];
        LoadNibbles(rows, at + offsetof(BlockQ4_0, qs), q);
        Store(q, b, tile);
      });
}

void DecodeQ4_1(const TileRowPointers& rows, uint64_t offset, int blocks,
                Tile32* tile) {
  ForBlocks<BlockQ4_1>(
      offset, blocks, [&](uint64_t at, int b) __attribute__((always_inline)) {
        const __m512i d_and_m = Load4Bytes(rows, at);
        _mm512_store_ps(tile->d[b], LowHalves(d_and_m));
        _mm512_store_ps(tile->m[b], HighHalves(d_and_m));
        __m512i q[8];
        LoadNibbles(rows, at + offsetof(BlockQ4_1, qs), q);
        Store(q, b, tile);
      });
}

void DecodeQ5_0(const TileRowPointers& rows, uint64_t offset, int blocks,
                Tile32* tile) {
  ForBlocks<BlockQ5_0>(
      offset, blocks, [&](uint64_t at, int b) __attribute__((always_inline)) {
        _mm512_store_ps(tile->d[b], LowHalves(Load4Bytes(rows, at)));
        __m512i q[8];
        LoadNibbles(rows, at + offsetof(BlockQ5_0, qs), q);
        AddFifthBits(Load4Bytes(rows, at + offsetof(BlockQ5_0, qh)), q);
        Store(q, b, tile);
      });
}

void DecodeQ5_1(const TileRowPointers& rows, uint64_t offset, int blocks,
                Tile32* tile) {
  ForBlocks<BlockQ5_1>(
      offset, blocks, [&](uint64_t at, int b) __attribute__((always_inline)) {
        const __m512i d_and_m = Load4Bytes(rows, at);
        _mm512_store_ps(tile->d[b], LowHalves(d_and_m));
        _mm512_store_ps(tile->m[b], HighHalves(d_and_m));
        __m512i q[8];
        LoadNibbles(rows, at + offsetof(BlockQ5_1, qs), q);
        AddFifthBits(Load4Bytes(rows, at + offsetof(BlockQ5_1, qh)), q);
        Store(q, b, tile);
      });
}

void DecodeIQ4_NL(const TileRowPointers& rows, uint64_t offset, int blocks,
                  Tile32* tile) {
  ForBlocks<BlockIQ4_NL>(
      offset, blocks, [&](uint64_t at, int b) __attribute__((always_inline)) {
        _mm512_store_ps(tile->d[b], LowHalves(Load4Bytes(rows, at)));
      });
  DecodeTable<BlockIQ4_NL>(rows, offset, blocks, kIq4Values, 128, tile);
}

void DecodeMXFP4(const TileRowPointers& rows, uint64_t offset, int blocks,
                 Tile32* tile) {
  ForBlocks<BlockMXFP4>(
      offset, blocks, [&](uint64_t at, int b) __attribute__((always_inline)) {
        // 2^(e - 128); the two smallest are subnormal.
        const __m512i e =
            _mm512_and_si512(Load4Bytes(rows, at), _mm512_set1_epi32(255));
        const __m512i normal =
            _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
        const __m512i bits = _mm512_mask_sllv_epi32(
            normal, _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2)),
            _mm512_set1_epi32(0x00200000), e);
        _mm512_store_si512(tile->d[b], bits);
      });
  DecodeTable<BlockMXFP4>(rows, offset, blocks, kMxfp4Values, 12, tile);
}

}  // namespace coldstream::avx512

#endif  // __AVX512F__
