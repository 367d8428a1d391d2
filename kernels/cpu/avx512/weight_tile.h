// Sixteen weight rows, decoded for products: the meeting point of the decoders
// (one per weight type) and the accumulators (VNNI, or plain AVX-512).
//
// A tile holds up to 256 columns of 16 rows, transposed so that lane r of every
// vector belongs to row r. Four neighbouring numbers of a row share a 32-bit
// lane, as the 8-bit dot product instructions want them:
//
//   w[i][4 r + j] = number of row r, column 4 i + j, made unsigned
//
// A product then needs no sum across lanes, and a decoded tile serves any
// number of tokens. What is exact is kept in integers: 256 columns at a time
// for the K-quants, 32 for the others. Floats are added one block after the
// other, so a token's result depends on nothing but its row and the weights.
#ifndef COLDSTREAM_KERNELS_CPU_AVX512_WEIGHT_TILE_H_
#define COLDSTREAM_KERNELS_CPU_AVX512_WEIGHT_TILE_H_

#include <cstddef>
#include <cstdint>

namespace coldstream::avx512 {

inline constexpr int kTileRows = 16;

// One block of 16 rows of a K-quant or of IQ4_XS. With y the activations, row
// r is worth
//   d * (sum over groups of scale * (w . y)  [+ pair . sums, if signed])
//   - dmin * (pair . sums)                   [if with minima]
// where pair . sums runs over groups two at a time: lane r of pair[p] holds the
// int16 factors of groups 2p and 2p + 1.
struct alignas(64) Tile256 {
  uint8_t w[64][64];
  int32_t scale[16][kTileRows];  // [group][row]; 8 or 16 groups
  int32_t pair[8][kTileRows];    // minima, or -offset * scale
  float d[kTileRows];
  float dmin[kTileRows];
};

// Up to eight blocks of 32 columns: d * (w . y - offset * sum) + m * sum.
struct alignas(64) Tile32 {
  uint8_t w[64][64];
  float d[8][kTileRows];
  float m[8][kTileRows];
};

// Where a tile comes from: the address of each row's first byte; rows past the
// end of a range repeat its last one.
//
// While they decode, decoders ask for as many bytes as they read, of the rows
// that come next: a tile itself is read column by column, which no hardware
// prefetcher follows. The next rows are fetched in four streams, each in the
// order it lies in memory. Measured on a Sapphire Rapids, one thread, from
// memory: Q4_K 8.4 GB/s when all of a block's share was asked for at once,
// 10 spread over the decoder, 13-15 in four streams; eight are no better.
struct TileSource {
  const std::byte* row[kTileRows];
  const std::byte* ahead;  // the first stream; asking past the end does no harm
  uint64_t ahead_stride;   // bytes from one stream to the next: four rows
};
inline constexpr int kAheadStreams = 4;

// Decoders of the block at byte `offset` of each row.
using Decode256Fn = void (*)(const TileSource& rows, uint64_t offset,
                             Tile256* tile);
// Decoders of `blocks` blocks, 1..8, from byte `offset` of each row.
using Decode32Fn = void (*)(const TileSource& rows, uint64_t offset, int blocks,
                            Tile32* tile);

void DecodeQ2_K(const TileSource&, uint64_t offset, Tile256*);
void DecodeQ3_K(const TileSource&, uint64_t offset, Tile256*);
void DecodeQ4_K(const TileSource&, uint64_t offset, Tile256*);
void DecodeQ5_K(const TileSource&, uint64_t offset, Tile256*);
void DecodeQ6_K(const TileSource&, uint64_t offset, Tile256*);
void DecodeIQ4_XS(const TileSource&, uint64_t offset, Tile256*);
void DecodeQ4_0(const TileSource&, uint64_t offset, int blocks, Tile32*);
void DecodeQ4_1(const TileSource&, uint64_t offset, int blocks, Tile32*);
void DecodeQ5_0(const TileSource&, uint64_t offset, int blocks, Tile32*);
void DecodeQ5_1(const TileSource&, uint64_t offset, int blocks, Tile32*);
void DecodeQ8_0(const TileSource&, uint64_t offset, int blocks, Tile32*);
void DecodeIQ4_NL(const TileSource&, uint64_t offset, int blocks, Tile32*);
void DecodeMXFP4(const TileSource&, uint64_t offset, int blocks, Tile32*);

}  // namespace coldstream::avx512

#endif  // COLDSTREAM_KERNELS_CPU_AVX512_WEIGHT_TILE_H_
