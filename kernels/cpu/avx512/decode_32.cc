// Tiles of the 32-value blocks. A signed number is stored plus an offset that
// makes it unsigned. Block layouts: kernels/quant_blocks.h.

#if defined(__AVX512F__)

#include "kernels/cpu/avx512/transpose.h"
#include "kernels/quant_blocks.h"

namespace coldstream::avx512 {
namespace {

// 32 four-bit numbers of each row.
[[gnu::always_inline]] inline void LoadNibbles(const TileSource& rows,
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

// 4-bit numbers that index a table of signed values.
[[gnu::always_inline]] inline void LookUp(const int8_t* values, int plus,
                                          __m512i q[8]) {
  const __m512i table = _mm512_add_epi8(
      _mm512_broadcast_i32x4(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(values))),
      Bytes(plus));
  for (int i = 0; i < 8; ++i) q[i] = _mm512_shuffle_epi8(table, q[i]);
}

// --- One block of sixteen rows: q, d and m of each type ----------------------

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockQ8_0, __m512i q[8], float* d,
                                         float*) {
  _mm512_store_ps(d, LowHalves(Load4Bytes(rows, at)));
  Load32Bytes(rows, at + offsetof(BlockQ8_0, qs), q);
  for (int i = 0; i < 8; ++i) q[i] = _mm512_xor_si512(q[i], Bytes(0x80));
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockQ4_0, __m512i q[8], float* d,
                                         float*) {
  _mm512_store_ps(d, LowHalves(Load4Bytes(rows, at)));
  LoadNibbles(rows, at + offsetof(BlockQ4_0, qs), q);
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockQ4_1, __m512i q[8], float* d,
                                         float* m) {
  const __m512i d_and_m = Load4Bytes(rows, at);
  _mm512_store_ps(d, LowHalves(d_and_m));
  _mm512_store_ps(m, HighHalves(d_and_m));
  LoadNibbles(rows, at + offsetof(BlockQ4_1, qs), q);
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockQ5_0, __m512i q[8], float* d,
                                         float*) {
  _mm512_store_ps(d, LowHalves(Load4Bytes(rows, at)));
  LoadNibbles(rows, at + offsetof(BlockQ5_0, qs), q);
  AddFifthBits(Load4Bytes(rows, at + offsetof(BlockQ5_0, qh)), q);
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockQ5_1, __m512i q[8], float* d,
                                         float* m) {
  const __m512i d_and_m = Load4Bytes(rows, at);
  _mm512_store_ps(d, LowHalves(d_and_m));
  _mm512_store_ps(m, HighHalves(d_and_m));
  LoadNibbles(rows, at + offsetof(BlockQ5_1, qs), q);
  AddFifthBits(Load4Bytes(rows, at + offsetof(BlockQ5_1, qh)), q);
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockIQ4_NL, __m512i q[8], float* d,
                                         float*) {
  _mm512_store_ps(d, LowHalves(Load4Bytes(rows, at)));
  LoadNibbles(rows, at + offsetof(BlockIQ4_NL, qs), q);
  LookUp(kIq4Values, 128, q);
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockMXFP4, __m512i q[8], float* d,
                                         float*) {
  // 2^(e - 128); the two smallest are subnormal.
  const __m512i e =
      _mm512_and_si512(Load4Bytes(rows, at), _mm512_set1_epi32(255));
  const __m512i normal =
      _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
  _mm512_store_ps(d,
                  _mm512_castsi512_ps(_mm512_mask_sllv_epi32(
                      normal, _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2)),
                      _mm512_set1_epi32(0x00200000), e)));
  LoadNibbles(rows, at + offsetof(BlockMXFP4, qs), q);
  LookUp(kMxfp4Values, 12, q);
}

template <typename BlockType>
[[gnu::always_inline]] inline void Blocks(const TileSource& rows,
                                          uint64_t offset, int blocks,
                                          Tile32* tile) {
  constexpr int kBytes = sizeof(BlockType);
  constexpr int kLines = LinesOf(8 * kBytes) / 8;  // after each block
  for (int b = 0; b < blocks; ++b) {
    __m512i q[8];
    Block(rows, offset + static_cast<uint64_t>(b * kBytes), BlockType{}, q,
          tile->d[b], tile->m[b]);
    for (int i = 0; i < 8; ++i) _mm512_store_si512(tile->w[8 * b + i], q[i]);
    PrefetchLines(rows, offset, kLines * b, kLines * b + kLines);
  }
  PrefetchLines(rows, offset, kLines * blocks, LinesOf(blocks * kBytes));
}

}  // namespace

void DecodeQ4_0(const TileSource& rows, uint64_t offset, int blocks,
                Tile32* tile) {
  Blocks<BlockQ4_0>(rows, offset, blocks, tile);
}

void DecodeQ4_1(const TileSource& rows, uint64_t offset, int blocks,
                Tile32* tile) {
  Blocks<BlockQ4_1>(rows, offset, blocks, tile);
}

void DecodeQ5_0(const TileSource& rows, uint64_t offset, int blocks,
                Tile32* tile) {
  Blocks<BlockQ5_0>(rows, offset, blocks, tile);
}

void DecodeQ5_1(const TileSource& rows, uint64_t offset, int blocks,
                Tile32* tile) {
  Blocks<BlockQ5_1>(rows, offset, blocks, tile);
}

void DecodeQ8_0(const TileSource& rows, uint64_t offset, int blocks,
                Tile32* tile) {
  Blocks<BlockQ8_0>(rows, offset, blocks, tile);
}

void DecodeIQ4_NL(const TileSource& rows, uint64_t offset, int blocks,
                  Tile32* tile) {
  Blocks<BlockIQ4_NL>(rows, offset, blocks, tile);
}

void DecodeMXFP4(const TileSource& rows, uint64_t offset, int blocks,
                 Tile32* tile) {
  Blocks<BlockMXFP4>(rows, offset, blocks, tile);
}

}  // namespace coldstream::avx512

#endif  // __AVX512F__
