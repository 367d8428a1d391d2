// Products of several tokens with the types of 32-value blocks, over decoded
// tiles. The same integers and the same floats as with one token
// (matmul_q8_32.cc): a token's result does not show its company.

#if defined(__AVX2__)

#include "kernels/activations.h"
#include "kernels/cpu/avx2/matmul_tiles.h"
#include "kernels/cpu/avx2/tile_rows.h"
#include "kernels/quant_blocks.h"

namespace coldstream::avx2 {
namespace {

constexpr int kSteps = 8;  // of a block

// kRun: how many steps' pairs of products fit in 16 bits. Two products of
// step i are at most 2 * largest number * 127; 8 * 2 * 15 * 127 < 2^15.
template <typename BlockType, Decode32Fn kDecodeFn, int kRunOf, int kOffsetOf,
          bool kMinimumOf, bool kSignedOf = false>
struct Type {
  using Block = BlockType;
  static constexpr Decode32Fn kDecode = kDecodeFn;
  static constexpr int kRun = kRunOf;
  static constexpr int kOffset = kOffsetOf;  // stored with it added
  static constexpr bool kMinimum = kMinimumOf;
  static constexpr bool kSigned = kSignedOf;
};
using Q4_0 = Type<BlockQ4_0, DecodeQ4_0, 8, 8, false>;
using Q4_1 = Type<BlockQ4_1, DecodeQ4_1, 8, 0, true>;
using Q5_0 = Type<BlockQ5_0, DecodeQ5_0, 4, 16, false>;
using Q5_1 = Type<BlockQ5_1, DecodeQ5_1, 4, 0, true>;
using Q8_0 = Type<BlockQ8_0, DecodeQ8_0, 1, 0, false, true>;
using IQ4_NL = Type<BlockIQ4_NL, DecodeIQ4_NL, 1, 0, false, true>;
using MXFP4 = Type<BlockMXFP4, DecodeMXFP4, 4, 12, false>;

// total[t] = the sums of number * x of one block; of_token: its numbers.
template <typename Type, int kTokens>
inline void AddSteps(const uint8_t (*w)[32],
                     const std::byte* const of_token[kTokens],
                     __m256i total[kTokens]) {
  for (int t = 0; t < kTokens; ++t) total[t] = _mm256_setzero_si256();
  const __m256i one = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int run = 0; run < kSteps / Type::kRun; ++run) {
    __m256i part[kTokens];
#pragma GCC unroll 8
    for (int i = 0; i < Type::kRun; ++i) {
      const int step = run * Type::kRun + i;
      const __m256i v = LoadAligned(w[step]);
      const __m256i magnitude = Type::kSigned ? _mm256_abs_epi8(v) : v;
      for (int t = 0; t < kTokens; ++t) {
        __m256i x = Broadcast32(of_token[t] + 4 * step);
        if constexpr (Type::kSigned) x = _mm256_sign_epi8(x, v);
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, x);
        part[t] = i == 0 ? pairs : _mm256_add_epi16(part[t], pairs);
        KeepInRegister(part[t]);
      }
    }
    for (int t = 0; t < kTokens; ++t) {
      const __m256i sum = _mm256_madd_epi16(part[t], one);
      total[t] = run == 0 ? sum : _mm256_add_epi32(total[t], sum);
      KeepInRegister(total[t]);
    }
  }
}

// Adds `blocks` blocks' parts to the sums of kTokens tokens. row: the first
// token's activations.
template <typename Type, int kTokens>
void AddBlocks(const Tile32& tile, int64_t blocks, const std::byte* row,
               uint64_t stride, int64_t k, int64_t first_block,
               float (*sums)[kLanes][kTileRows]) {
  const Q8_32Row x = ViewQ8_32(row, k);
  const std::byte* of_token[kTokens];
  const std::byte* q = row + 32 * first_block;
  for (int t = 0; t < kTokens; ++t, q += stride) of_token[t] = q;
  // int16 pairs (-offset, 0) against the halves of an int32 sum.
  const __m256i offset = _mm256_set1_epi32(-Type::kOffset & 0xffff);
  for (int64_t b = 0; b < blocks; ++b) {
    __m256i total[kTokens];
    AddSteps<Type, kTokens>(tile.w + kSteps * b, of_token, total);
    const __m256 d = _mm256_load_ps(tile.d[b]);
    uint64_t at = static_cast<uint64_t>(first_block + b) * sizeof(float);
    for (int t = 0; t < kTokens; ++t, at += stride) {
      of_token[t] += 32;
      const auto of = [at](const auto* p) {
        return Broadcast32(reinterpret_cast<const std::byte*>(p) + at);
      };
      if constexpr (Type::kOffset != 0)
        total[t] =
            _mm256_add_epi32(total[t], _mm256_madd_epi16(offset, of(x.sum)));
      __m256 sum = _mm256_load_ps(sums[t][b]);
      if constexpr (Type::kMinimum)
        sum = _mm256_fmadd_ps(_mm256_load_ps(tile.m[b]),
                              _mm256_castsi256_ps(of(x.scaled_sum)), sum);
      sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total[t]),
                            _mm256_mul_ps(d, _mm256_castsi256_ps(of(x.scale))),
                            sum);
      _mm256_store_ps(sums[t][b], sum);
    }
  }
}

template <typename Type>
void Rows(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  constexpr uint64_t kBlockBytes = sizeof(typename Type::Block);
  const int64_t k = args.weight.cols;
  const int64_t blocks = k / 32;
  const uint64_t row_bytes = static_cast<uint64_t>(blocks) * kBlockBytes;
  const uint64_t stride = args.activation_stride;
  ForTiles(args, row_bytes, row_begin, row_end,
           [&](const TileSource& source, const std::byte* x, int64_t tokens,
               Sums* sums) {
             Tile32 tile;
             for (int64_t b = 0; b < blocks; b += kLanes) {
               const int64_t count = Smaller(kLanes, blocks - b);
               const uint64_t offset = static_cast<uint64_t>(b) * kBlockBytes;
               Type::kDecode(source, offset, static_cast<int>(count), &tile);
               FetchAhead(source, row_bytes, offset,
                          static_cast<uint64_t>(count) * kBlockBytes);
               InRegisters(tokens, [&](int64_t t, auto token_count) {
                 AddBlocks<Type, decltype(token_count)::value>(
                     tile, count, x + static_cast<uint64_t>(t) * stride, stride,
                     k, b, sums->value + t);
               });
             }
           });
}

}  // namespace

void TilesQ4_0(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<Q4_0>(args, row_begin, row_end);
}
void TilesQ4_1(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<Q4_1>(args, row_begin, row_end);
}
void TilesQ5_0(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<Q5_0>(args, row_begin, row_end);
}
void TilesQ5_1(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<Q5_1>(args, row_begin, row_end);
}
void TilesQ8_0(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<Q8_0>(args, row_begin, row_end);
}
void TilesIQ4_NL(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<IQ4_NL>(args, row_begin, row_end);
}
void TilesMXFP4(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<MXFP4>(args, row_begin, row_end);
}

}  // namespace coldstream::avx2

#endif  // __AVX2__
