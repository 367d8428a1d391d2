// Eight rows of a quantised weight, decoded for products with several tokens.
//
// Lane r (four bytes) of a vector belongs to row r, and step i covers columns
// 4 i .. 4 i + 3. A tile is decoded once, then multiplied with each token's
// four values broadcast: sums stay in their lanes, one a row, and nothing is
// added across. 16-bit sums of a whole group take one product with its scale.
#ifndef COLDSTREAM_KERNELS_CPU_AVX2_WEIGHT_TILE_H_
#define COLDSTREAM_KERNELS_CPU_AVX2_WEIGHT_TILE_H_

#include <cstddef>
#include <cstdint>

namespace coldstream::avx2 {

inline constexpr int64_t kTileRows = 8;

// One block of 256 columns. w holds the numbers as stored (not negative), or
// signed ones for Q6_K and IQ4_XS. With y the activations, row r is worth
//   d * (sum over groups of scale * (w . y)  [+ pair . sums, Q3_K])
//   - dmin * (pair . sums)                   [with minima]
// where pair . sums runs over groups two at a time: lane r of pair[p] holds the
// int16 factors of groups 2p and 2p + 1. A scale is in both int16 of its lane.
struct alignas(32) Tile256 {
  uint8_t w[64][32];
  int16_t scale[16][2 * kTileRows];  // [group][row]; 8 or 16 groups
  int16_t pair[8][2 * kTileRows];    // minima, or -4 * scale
  float d[kTileRows];
  float dmin[kTileRows];
};

// Up to eight blocks of 32 columns: d * (w . y - offset * sum) + m * sum.
struct alignas(32) Tile32 {
  uint8_t w[64][32];
  float d[8][kTileRows];
  float m[8][kTileRows];
};

// Where a tile comes from: the address of each row's first byte; rows past the
// end of a range repeat its last one.
struct TileSource {
  const std::byte* row[kTileRows];
  const std::byte* ahead;  // rows to fetch meanwhile: the next tile's
};

// Decoders of the block at byte `offset` of each row.
using Decode256Fn = void (*)(const TileSource& source, uint64_t offset,
                             Tile256* tile);
// Decoders of `blocks` blocks, 1..8, from byte `offset` of each row.
using Decode32Fn = void (*)(const TileSource& source, uint64_t offset,
                            int blocks, Tile32* tile);

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

}  // namespace coldstream::avx2

#endif  // COLDSTREAM_KERNELS_CPU_AVX2_WEIGHT_TILE_H_
