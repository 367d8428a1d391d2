// Products of several tokens over decoded tiles of eight rows (weight_tile.h):
// the loops around what a type does with a tile.
//
// Order of a sum, the same as with one token (matmul_q8_*.cc): eight lanes by
// block number modulo eight, then a tree over them.
//
// Internal linkage on purpose: every file that includes this has its own copy,
// compiled with its own flags (see register.h).
#ifndef COLDSTREAM_KERNELS_CPU_AVX2_TILE_ROWS_H_
#define COLDSTREAM_KERNELS_CPU_AVX2_TILE_ROWS_H_

#include <immintrin.h>

#include "kernels/cpu/avx2/lanes.h"
#include "kernels/cpu/avx2/weight_tile.h"
#include "kernels/ops.h"

namespace coldstream::avx2 {
namespace {

// Tokens that share a decoded tile: their sums and their part of the
// activations stay in the first-level cache.
constexpr int64_t kTokenTile = 32;
// Rows that stay in the second-level cache while all token tiles pass by.
constexpr int64_t kRowChunkBytes = 128 * 1024;

// The floats of eight rows for each token of a tile, by block modulo eight.
struct alignas(32) Sums {
  float value[kTokenTile][kLanes][kTileRows];
};

inline int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

inline __m256i LoadAligned(const void* p) {
  return _mm256_load_si256(static_cast<const __m256i*>(p));
}

// Four bytes at p in every lane.
inline __m256i Broadcast32(const void* p) {
  int32_t value;
  __builtin_memcpy(&value, p, sizeof(value));
  return _mm256_set1_epi32(value);
}

// Makes v a register at this point: compilers reorder integer sums, and then
// run out of registers.
inline void KeepInRegister(__m256i& v) { asm("" : "+x"(v)); }

// Calls add(t, count) for all tokens, `count` a constant of 8, 4, 2 or 1.
template <int kCount>
struct Count {
  static constexpr int value = kCount;
};
template <typename Add>
inline void InRegisters(int64_t tokens, Add add) {
  int64_t t = 0;
  for (; t + 8 <= tokens; t += 8) add(t, Count<8>());
  if (t + 4 <= tokens) {
    add(t, Count<4>());
    t += 4;
  }
  if (t + 2 <= tokens) {
    add(t, Count<2>());
    t += 2;
  }
  if (t < tokens) add(t, Count<1>());
}

// Asks for as many bytes of the rows ahead as the block at `offset` of each row
// has: a tile itself is read column by column, which no hardware prefetcher
// follows well. Two streams, each in the order it lies in memory; measured on
// Zen 2 from memory, Q4_K and Q8_0 with two tokens: 26 and 20 G multiply-adds/s
// without, 36 and 18 with one stream, 36 and 22 with two, 32 and 22 with four.
inline void FetchAhead(const TileSource& source, uint64_t row_bytes,
                       uint64_t offset, uint64_t bytes) {
  constexpr uint64_t kRowsOfStream = kTileRows / 2;
  const char* stream =
      reinterpret_cast<const char*>(source.ahead) + kRowsOfStream * offset;
  for (uint64_t at = 0; at < kRowsOfStream * bytes; at += 64) {
    _mm_prefetch(stream + at, _MM_HINT_T0);
    _mm_prefetch(stream + kRowsOfStream * row_bytes + at, _MM_HINT_T0);
  }
}

// The sum over the lanes of one token, as SumLanes adds them.
inline __m256 SumOf(const float (*lanes)[kTileRows]) {
  const auto pair = [lanes](int i) {
    return _mm256_add_ps(_mm256_load_ps(lanes[i]),
                         _mm256_load_ps(lanes[4 + i]));
  };
  return _mm256_add_ps(_mm256_add_ps(pair(0), pair(2)),
                       _mm256_add_ps(pair(1), pair(3)));
}

// Rows [row, row + 8) below row_end of tokens [token, token + tokens), of which
// add(source, x, tokens, sums) makes the lanes; x: the first one's activations.
template <typename Add>
inline void TileRows(const MatmulArgs& args, uint64_t row_bytes, int64_t row,
                     int64_t row_end, int64_t token, int64_t tokens, Add add) {
  TileSource source;
  for (int64_t r = 0; r < kTileRows; ++r)
    source.row[r] =
        args.weight.data +
        static_cast<uint64_t>(Smaller(row + r, row_end - 1)) * row_bytes;
  // Past the end of the range too: mostly the same thread takes the next one,
  // and asking for what is not there does no harm. Tokens that follow find the
  // rows in the cache.
  source.ahead = source.row[0] + (token == 0 ? kTileRows * row_bytes : 0);
  Sums sums;
  __builtin_memset(sums.value, 0,
                   static_cast<size_t>(tokens) * sizeof(sums.value[0]));
  add(source,
      args.activations + static_cast<uint64_t>(token) * args.activation_stride,
      tokens, &sums);
  for (int64_t t = 0; t < tokens; ++t)
    StoreFirst(args.out + (token + t) * args.out_stride + row, row_end - row,
               SumOf(sums.value[t]));
}

// All tokens and rows [row_begin, row_end), a chunk of rows at a time.
template <typename Add>
inline void ForTiles(const MatmulArgs& args, uint64_t row_bytes,
                     int64_t row_begin, int64_t row_end, Add add) {
  const int64_t fit = kRowChunkBytes / static_cast<int64_t>(row_bytes);
  const int64_t chunk =
      fit > kTileRows ? fit / kTileRows * kTileRows : kTileRows;
  for (int64_t begin = row_begin; begin < row_end; begin += chunk) {
    const int64_t end = Smaller(begin + chunk, row_end);
    for (int64_t token = 0; token < args.tokens; token += kTokenTile) {
      const int64_t tokens = Smaller(kTokenTile, args.tokens - token);
      for (int64_t row = begin; row < end; row += kTileRows)
        TileRows(args, row_bytes, row, end, token, tokens, add);
    }
  }
}

}  // namespace
}  // namespace coldstream::avx2

#endif  // COLDSTREAM_KERNELS_CPU_AVX2_TILE_ROWS_H_
