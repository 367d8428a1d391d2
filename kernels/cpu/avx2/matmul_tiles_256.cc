// Products of several tokens with the types of 256-value blocks, over decoded
// tiles. The same integers and the same floats as with one token
// (matmul_q8_256.cc): a token's result does not show its company.

#if defined(__AVX2__)

#include "kernels/activations.h"
#include "kernels/cpu/avx2/matmul_tiles.h"
#include "kernels/cpu/avx2/tile_rows.h"
#include "kernels/quant_blocks.h"

namespace coldstream::avx2 {
namespace {

// What has to be added to the sum of scale * number * x.
enum class Extra : uint8_t { kNone, kOffset, kMinimum };

// kRun: how many steps' pairs of products fit in 16 bits. Two products of
// step i are at most 2 * largest number * 127; 8 * 2 * 15 * 127 < 2^15.
template <typename BlockType, Decode256Fn kDecodeFn, int kGroupsOf, int kRunOf,
          Extra kExtraOf, bool kSignedOf = false>
struct Type {
  using Block = BlockType;
  static constexpr Decode256Fn kDecode = kDecodeFn;
  static constexpr int kGroups = kGroupsOf;
  static constexpr int kRun = kRunOf;
  static constexpr Extra kExtra = kExtraOf;
  static constexpr bool kSigned = kSignedOf;
};
using Q2_K = Type<BlockQ2_K, DecodeQ2_K, 16, 4, Extra::kMinimum>;
using Q3_K = Type<BlockQ3_K, DecodeQ3_K, 16, 4, Extra::kOffset>;
using Q4_K = Type<BlockQ4_K, DecodeQ4_K, 8, 8, Extra::kMinimum>;
using Q5_K = Type<BlockQ5_K, DecodeQ5_K, 8, 4, Extra::kMinimum>;
using Q6_K = Type<BlockQ6_K, DecodeQ6_K, 16, 4, Extra::kNone, true>;
using IQ4_XS = Type<BlockIQ4_XS, DecodeIQ4_XS, 8, 1, Extra::kNone, true>;

// total[t] = the block's sums of scale * number * x. q: the first token's
// numbers.
template <typename Type, int kTokens>
inline void AddGroups(const Tile256& tile, const std::byte* q, uint64_t stride,
                      __m256i total[kTokens]) {
  const std::byte* of_token[kTokens];
  for (int t = 0; t < kTokens; ++t, q += stride) of_token[t] = q;
  for (int t = 0; t < kTokens; ++t) total[t] = _mm256_setzero_si256();
  constexpr int kRunsOfGroup = 64 / Type::kGroups / Type::kRun;
  for (int run = 0; run < 64 / Type::kRun; ++run) {
    __m256i part[kTokens];
#pragma GCC unroll 8
    for (int i = 0; i < Type::kRun; ++i) {
      const int step = run * Type::kRun + i;
      const __m256i w = LoadAligned(tile.w[step]);
      const __m256i magnitude = Type::kSigned ? _mm256_abs_epi8(w) : w;
      for (int t = 0; t < kTokens; ++t) {
        __m256i x = Broadcast32(of_token[t] + 4 * step);
        if constexpr (Type::kSigned) x = _mm256_sign_epi8(x, w);
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, x);
        part[t] = i == 0 ? pairs : _mm256_add_epi16(part[t], pairs);
        KeepInRegister(part[t]);
      }
    }
    const __m256i scale = LoadAligned(tile.scale[run / kRunsOfGroup]);
    for (int t = 0; t < kTokens; ++t)
      total[t] = _mm256_add_epi32(total[t], _mm256_madd_epi16(part[t], scale));
  }
}

// The offsets' or minima's sum for one token; sums: of its groups.
template <typename Type>
inline __m256i AddPairs(const Tile256& tile, const std::byte* sums) {
  __m256i total = _mm256_setzero_si256();
  for (int p = 0; p < Type::kGroups / 2; ++p)
    total =
        _mm256_add_epi32(total, _mm256_madd_epi16(LoadAligned(tile.pair[p]),
                                                  Broadcast32(sums + 4 * p)));
  return total;
}

// Adds a block's part to the sums of kTokens tokens. row: the first token's
// activations.
template <typename Type, int kTokens>
void AddBlock(const Tile256& tile, const std::byte* row, uint64_t stride,
              int64_t k, int64_t block, float (*sums)[kLanes][kTileRows]) {
  __m256i total[kTokens];
  AddGroups<Type, kTokens>(tile, row + 256 * block, stride, total);
  const Q8_256Row x = ViewQ8_256(row, k);
  const auto* group_sums =
      Type::kGroups == 16
          ? reinterpret_cast<const std::byte*>(x.sum16 + 16 * block)
          : reinterpret_cast<const std::byte*>(x.sum32 + 8 * block);
  const auto* scale = reinterpret_cast<const std::byte*>(x.scale + block);
  const __m256 d = _mm256_load_ps(tile.d);
  for (int t = 0; t < kTokens; ++t, group_sums += stride, scale += stride) {
    if constexpr (Type::kExtra == Extra::kOffset)
      total[t] = _mm256_add_epi32(total[t], AddPairs<Type>(tile, group_sums));
    __m256 value = _mm256_cvtepi32_ps(total[t]);
    if constexpr (Type::kExtra == Extra::kMinimum) {
      const __m256 minima =
          _mm256_mul_ps(_mm256_cvtepi32_ps(AddPairs<Type>(tile, group_sums)),
                        _mm256_load_ps(tile.dmin));
      value = _mm256_fmsub_ps(value, d, minima);
    } else {
      value = _mm256_mul_ps(value, d);
    }
    float* lane = sums[t][block % kLanes];
    _mm256_store_ps(
        lane, _mm256_fmadd_ps(value, _mm256_castsi256_ps(Broadcast32(scale)),
                              _mm256_load_ps(lane)));
  }
}

template <typename Type>
void Rows(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  constexpr uint64_t kBlockBytes = sizeof(typename Type::Block);
  const int64_t k = args.weight.cols;
  const int64_t blocks = k / 256;
  const uint64_t row_bytes = static_cast<uint64_t>(blocks) * kBlockBytes;
  const uint64_t stride = args.activation_stride;
  ForTiles(args, row_bytes, row_begin, row_end,
           [&](const TileSource& source, const std::byte* x, int64_t tokens,
               Sums* sums) {
             Tile256 tile;
             for (int64_t b = 0; b < blocks; ++b) {
               const uint64_t offset = static_cast<uint64_t>(b) * kBlockBytes;
               Type::kDecode(source, offset, &tile);
               FetchAhead(source, row_bytes, offset, kBlockBytes);
               InRegisters(tokens, [&](int64_t t, auto count) {
                 AddBlock<Type, decltype(count)::value>(
                     tile, x + static_cast<uint64_t>(t) * stride, stride, k, b,
                     sums->value + t);
               });
             }
           });
}

}  // namespace

void TilesQ2_K(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<Q2_K>(args, row_begin, row_end);
}
void TilesQ3_K(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<Q3_K>(args, row_begin, row_end);
}
void TilesQ4_K(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<Q4_K>(args, row_begin, row_end);
}
void TilesQ5_K(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<Q5_K>(args, row_begin, row_end);
}
void TilesQ6_K(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<Q6_K>(args, row_begin, row_end);
}
void TilesIQ4_XS(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  Rows<IQ4_XS>(args, row_begin, row_end);
}

}  // namespace coldstream::avx2

#endif  // __AVX2__
