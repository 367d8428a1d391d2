// Tiles of the 32-value blocks. Q8_0 and IQ4_NL are signed, the others as
// stored (MXFP4's plus 12), none negative. Block layouts:
// kernels/quant_blocks.h.

#if defined(__AVX2__)

#include "kernels/cpu/avx2/transpose.h"
#include "kernels/quant_blocks.h"

namespace coldstream::avx2 {
namespace {

// 32 four-bit numbers of each row.
[[gnu::always_inline]] inline void LoadNibbles(const TileSource& rows,
                                               uint64_t offset,
                                               __m256i out[8]) {
  const __m256i four = Bytes(0x0f);
  __m256i q[4];
  Load16Bytes(rows, offset, q);
  for (int i = 0; i < 4; ++i) {
    out[i] = _mm256_and_si256(q[i], four);
    out[4 + i] = _mm256_and_si256(_mm256_srli_epi32(q[i], 4), four);
  }
}

// Adds the fifth bits: bit i of a row's `high` to number i.
[[gnu::always_inline]] inline void AddFifthBits(__m256i high, __m256i q[8]) {
  const __m256i fifth = Bytes(0x10);
  const __m256i even = _mm256_set1_epi32(0x08040201);
  const __m256i odd = _mm256_set1_epi32(static_cast<int>(0x80402010u));
  const __m256i bytes_of_row = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
  const auto set = [fifth](__m256i byte, __m256i bits) {
    return _mm256_and_si256(
        _mm256_cmpeq_epi8(_mm256_and_si256(byte, bits), bits), fifth);
  };
  for (int i = 0; i < 4; ++i) {
    const __m256i byte =
        _mm256_shuffle_epi8(high, _mm256_add_epi8(bytes_of_row, Bytes(i)));
    q[2 * i] = _mm256_or_si256(q[2 * i], set(byte, even));
    q[2 * i + 1] = _mm256_or_si256(q[2 * i + 1], set(byte, odd));
  }
}

// 4-bit numbers that index a table of signed values.
[[gnu::always_inline]] inline void LookUp(const int8_t* values, int plus,
                                          __m256i q[8]) {
  const __m256i table = _mm256_add_epi8(
      _mm256_broadcastsi128_si256(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(values))),
      Bytes(plus));
  for (int i = 0; i < 8; ++i) q[i] = _mm256_shuffle_epi8(table, q[i]);
}

// --- One block of eight rows: q, d and m of each type ------------------------

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockQ8_0, __m256i q[8], float* d,
                                         float*) {
  _mm256_store_ps(d, LoadHalf(rows, at));
  Load32Bytes(rows, at + offsetof(BlockQ8_0, qs), q);
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockQ4_0, __m256i q[8], float* d,
                                         float*) {
  _mm256_store_ps(d, LoadHalf(rows, at));
  LoadNibbles(rows, at + offsetof(BlockQ4_0, qs), q);
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockQ4_1, __m256i q[8], float* d,
                                         float* m) {
  const __m256i d_and_m = Load4Bytes(rows, at);
  _mm256_store_ps(d, LowHalves(d_and_m));
  _mm256_store_ps(m, HighHalves(d_and_m));
  LoadNibbles(rows, at + offsetof(BlockQ4_1, qs), q);
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockQ5_0, __m256i q[8], float* d,
                                         float*) {
  _mm256_store_ps(d, LoadHalf(rows, at));
  LoadNibbles(rows, at + offsetof(BlockQ5_0, qs), q);
  AddFifthBits(Load4Bytes(rows, at + offsetof(BlockQ5_0, qh)), q);
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockQ5_1, __m256i q[8], float* d,
                                         float* m) {
  const __m256i d_and_m = Load4Bytes(rows, at);
  _mm256_store_ps(d, LowHalves(d_and_m));
  _mm256_store_ps(m, HighHalves(d_and_m));
  LoadNibbles(rows, at + offsetof(BlockQ5_1, qs), q);
  AddFifthBits(Load4Bytes(rows, at + offsetof(BlockQ5_1, qh)), q);
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockIQ4_NL, __m256i q[8], float* d,
                                         float*) {
  _mm256_store_ps(d, LoadHalf(rows, at));
  LoadNibbles(rows, at + offsetof(BlockIQ4_NL, qs), q);
  LookUp(kIq4Values, 0, q);
}

[[gnu::always_inline]] inline void Block(const TileSource& rows, uint64_t at,
                                         BlockMXFP4, __m256i q[8], float* d,
                                         float*) {
  // 2^(e - 128); the two smallest are subnormal.
  const __m256i e =
      _mm256_and_si256(Load4Bytes(rows, at), _mm256_set1_epi32(255));
  const __m256i normal =
      _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
  const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
  Store(d, _mm256_blendv_epi8(normal, subnormal,
                              _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
  LoadNibbles(rows, at + offsetof(BlockMXFP4, qs), q);
  LookUp(kMxfp4Values, 12, q);
}

template <typename BlockType>
[[gnu::always_inline]] inline void Blocks(const TileSource& source,
                                          uint64_t offset, int blocks,
                                          Tile32* tile) {
  const TileSource rows = source;
  for (int b = 0; b < blocks; ++b) {
    __m256i q[8];
    Block(rows, offset, BlockType{}, q, tile->d[b], tile->m[b]);
    for (int i = 0; i < 8; ++i) Store(tile->w[8 * b + i], q[i]);
    offset += sizeof(BlockType);
  }
}

}  // namespace

void DecodeQ4_0(const TileSource& source, uint64_t offset, int blocks,
                Tile32* tile) {
  Blocks<BlockQ4_0>(source, offset, blocks, tile);
}

void DecodeQ4_1(const TileSource& source, uint64_t offset, int blocks,
                Tile32* tile) {
  Blocks<BlockQ4_1>(source, offset, blocks, tile);
}

void DecodeQ5_0(const TileSource& source, uint64_t offset, int blocks,
                Tile32* tile) {
  Blocks<BlockQ5_0>(source, offset, blocks, tile);
}

void DecodeQ5_1(const TileSource& source, uint64_t offset, int blocks,
                Tile32* tile) {
  Blocks<BlockQ5_1>(source, offset, blocks, tile);
}

void DecodeQ8_0(const TileSource& source, uint64_t offset, int blocks,
                Tile32* tile) {
  Blocks<BlockQ8_0>(source, offset, blocks, tile);
}

void DecodeIQ4_NL(const TileSource& source, uint64_t offset, int blocks,
                  Tile32* tile) {
  Blocks<BlockIQ4_NL>(source, offset, blocks, tile);
}

void DecodeMXFP4(const TileSource& source, uint64_t offset, int blocks,
                 Tile32* tile) {
  Blocks<BlockMXFP4>(source, offset, blocks, tile);
}

}  // namespace coldstream::avx2

#endif  // __AVX2__
