// Products of 8-bit activations with any quantised type, over decoded tiles of
// sixteen rows (weight_tile.h). Included by matmul_vnni.cc and matmul_plain.cc,
// which differ in the dot product they hand in:
//
//   struct Dot {
//     // acc + w . y over the four bytes of each lane, w unsigned, y signed;
//     // kWide if w may exceed 128.
//     template <bool kWide> static __m512i Bytes(acc, w, y);
//     static __m512i Pairs(acc, a, b);  // the same over two int16
//   };
//
// Both are exact, so both give the same bits. Rows advance sixteen at a time
// and, within them, block by block; a tile decoded once serves up to kTokenTile
// tokens, eight or fewer in registers. The floats added for a (row, token) and
// their order are the same for any number of tokens.
//
// Internal linkage on purpose: every file that includes this has its own copy,
// compiled with its own flags (see register.h).
#ifndef COLDSTREAM_KERNELS_CPU_AVX512_MATMUL_ROWS_H_
#define COLDSTREAM_KERNELS_CPU_AVX512_MATMUL_ROWS_H_

#include <immintrin.h>

#include <cstring>

#include "kernels/activations.h"
#include "kernels/cpu/avx512/weight_tile.h"
#include "kernels/ops.h"
#include "kernels/quant_blocks.h"

namespace coldstream::avx512 {
namespace {

// Tokens that share a decoded tile: their sums and their part of the
// activations stay in the first-level cache.
constexpr int64_t kTokenTile = 64;

// What has to be added for numbers stored with an offset, or for minima.
enum class Correction { kNone, kOffset, kMinimum };

// The floats of sixteen rows for each token of a tile.
struct alignas(64) Sums {
  float value[kTokenTile][kTileRows];
};

// --- Small parts -------------------------------------------------------------

inline int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Four bytes at p in every lane: a memory operand of the instruction.
inline __m512i Broadcast32(const void* p) {
  int32_t value;
  std::memcpy(&value, p, sizeof(value));
  return _mm512_set1_epi32(value);
}

// The tile at `first`, of which `rows` rows are wanted. Fetches ahead past the
// end of the range too: mostly the same thread takes the next one. Otherwise
// the decoders ask for what they have.
inline TileSource SourceAt(const std::byte* first, uint64_t row_bytes,
                           int64_t rows, bool fetch_ahead) {
  TileSource source;
  for (int64_t r = 0; r < kTileRows; ++r) {
    source.row[r] =
        first + static_cast<uint64_t>(r < rows ? r : rows - 1) * row_bytes;
  }
  source.ahead = fetch_ahead ? first + kTileRows * row_bytes : first;
  source.ahead_stride = kTileRows / kAheadStreams * row_bytes;
  return source;
}

// value -= other, if any, and out[t, row..] = value.
inline void StoreSums(const Sums& sums, const Sums* other,
                      const MatmulArgs& args, int64_t row, int64_t rows,
                      int64_t token, int64_t tokens) {
  const __mmask16 mask =
      static_cast<__mmask16>(rows >= kTileRows ? 0xffff : (1 << rows) - 1);
  for (int64_t t = 0; t < tokens; ++t) {
    __m512 value = _mm512_load_ps(sums.value[t]);
    if (other != nullptr)
      value = _mm512_sub_ps(value, _mm512_load_ps(other->value[t]));
    _mm512_mask_storeu_ps(args.out + (token + t) * args.out_stride + row, mask,
                          value);
  }
}

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

// --- 256-value blocks --------------------------------------------------------

template <typename BlockType, Decode256Fn kDecodeFn, int kGroupsOf,
          Correction kCorrectionOf, bool kWideOf = false>
struct Type256 {
  using Block = BlockType;
  static constexpr Decode256Fn kDecode = kDecodeFn;
  static constexpr int kGroups = kGroupsOf;
  static constexpr Correction kCorrection = kCorrectionOf;
  static constexpr bool kWide = kWideOf;
};

// Adds one block's part to the sums of kTokens tokens. row: the first token's
// activations.
template <typename Dot, typename Type, int kTokens>
inline void AddBlock256(const Tile256& tile, const std::byte* row,
                        uint64_t stride, int64_t k, int64_t block,
                        float (*sums)[kTileRows], float (*minima)[kTileRows]) {
  const Q8_256Row y = ViewQ8_256(row, k);
  const int8_t* q = y.q + 256 * block;
  const std::byte* group_sums =
      Type::kGroups == 16
          ? reinterpret_cast<const std::byte*>(y.sum16 + 16 * block)
          : reinterpret_cast<const std::byte*>(y.sum32 + 8 * block);
  const auto of_token = [stride](int t) {
    return static_cast<uint64_t>(t) * stride;
  };
  __m512i total[kTokens];
  __m512i paired[kTokens];
  for (int t = 0; t < kTokens; ++t) paired[t] = _mm512_setzero_si512();
  for (int p = 0; p < Type::kGroups / 2; ++p) {
    const __m512i pair = _mm512_load_si512(tile.pair[p]);
    for (int t = 0; t < kTokens; ++t) {
      paired[t] = Dot::Pairs(paired[t], pair,
                             Broadcast32(group_sums + of_token(t) + 4 * p));
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    total[t] = Type::kCorrection == Correction::kOffset
                   ? paired[t]
                   : _mm512_setzero_si512();
  }
  constexpr int kSteps = 64 / Type::kGroups;  // of four columns
  for (int g = 0; g < Type::kGroups; ++g) {
    __m512i part[kTokens];
    for (int t = 0; t < kTokens; ++t) part[t] = _mm512_setzero_si512();
    for (int i = 0; i < kSteps; ++i) {
      const __m512i w = _mm512_load_si512(tile.w[kSteps * g + i]);
      for (int t = 0; t < kTokens; ++t) {
        part[t] = Dot::template Bytes<Type::kWide>(
            part[t], w, Broadcast32(q + of_token(t) + 4 * (kSteps * g + i)));
      }
    }
    const __m512i scale = _mm512_load_si512(tile.scale[g]);
    for (int t = 0; t < kTokens; ++t) {
      total[t] = _mm512_add_epi32(total[t], _mm512_mullo_epi32(part[t], scale));
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    float dy;
    std::memcpy(
        &dy, reinterpret_cast<const std::byte*>(y.scale + block) + of_token(t),
        sizeof(dy));
    const __m512 scale = _mm512_set1_ps(dy);
    _mm512_store_ps(
        sums[t], _mm512_fmadd_ps(_mm512_cvtepi32_ps(total[t]),
                                 _mm512_mul_ps(_mm512_load_ps(tile.d), scale),
                                 _mm512_load_ps(sums[t])));
    if constexpr (Type::kCorrection == Correction::kMinimum) {
      _mm512_store_ps(
          minima[t],
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(paired[t]),
                          _mm512_mul_ps(_mm512_load_ps(tile.dmin), scale),
                          _mm512_load_ps(minima[t])));
    }
  }
}

template <typename Dot, typename Type>
void Rows256(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  constexpr uint64_t kBlockBytes = sizeof(typename Type::Block);
  const int64_t k = args.weight.cols;
  const int64_t blocks = k / 256;
  const uint64_t row_bytes = static_cast<uint64_t>(blocks) * kBlockBytes;
  Tile256 tile;
  Sums sums;
  Sums minima;
  for (int64_t token = 0; token < args.tokens; token += kTokenTile) {
    const int64_t tokens = Smaller(kTokenTile, args.tokens - token);
    const std::byte* x = args.activations +
                         static_cast<uint64_t>(token) * args.activation_stride;
    for (int64_t row = row_begin; row < row_end; row += kTileRows) {
      const std::byte* data =
          args.weight.data + static_cast<uint64_t>(row) * row_bytes;
      const TileSource rows =
          SourceAt(data, row_bytes, row_end - row,
                   token == 0 && row + kTileRows < args.weight.rows);
      std::memset(sums.value, 0, static_cast<size_t>(tokens) * 64);
      std::memset(minima.value, 0, static_cast<size_t>(tokens) * 64);
      for (int64_t b = 0; b < blocks; ++b) {
        const uint64_t offset = static_cast<uint64_t>(b) * kBlockBytes;
        Type::kDecode(rows, offset, &tile);
        InRegisters(tokens, [&](int64_t t, auto count) {
          AddBlock256<Dot, Type, decltype(count)::value>(
              tile, x + static_cast<uint64_t>(t) * args.activation_stride,
              args.activation_stride, k, b, sums.value + t, minima.value + t);
        });
      }
      StoreSums(sums,
                Type::kCorrection == Correction::kMinimum ? &minima : nullptr,
                args, row, Smaller(row_end - row, kTileRows), token, tokens);
    }
  }
}

// --- 32-value blocks ---------------------------------------------------------

template <typename BlockType, Decode32Fn kDecodeFn, Correction kCorrectionOf,
          int kOffsetOf = 0, bool kWideOf = false>
struct Type32 {
  using Block = BlockType;
  static constexpr Decode32Fn kDecode = kDecodeFn;
  static constexpr Correction kCorrection = kCorrectionOf;
  static constexpr int kOffset = kOffsetOf;
  static constexpr bool kWide = kWideOf;
};

// Adds `blocks` blocks' parts to the sums of kTokens tokens.
template <typename Dot, typename Type, int kTokens>
inline void AddBlocks32(const Tile32& tile, int blocks, const std::byte* row,
                        uint64_t stride, int64_t k, int64_t first_block,
                        float (*sums)[kTileRows]) {
  const Q8_32Row y = ViewQ8_32(row, k);
  const auto of_token = [stride](const void* p, int t) {
    return static_cast<const std::byte*>(p) + static_cast<uint64_t>(t) * stride;
  };
  // int16 pairs (-offset, 0) against the halves of an int32 sum.
  const __m512i offset = _mm512_set1_epi32(-Type::kOffset & 0xffff);
  __m512 total[kTokens];
  for (int t = 0; t < kTokens; ++t) total[t] = _mm512_load_ps(sums[t]);
  for (int b = 0; b < blocks; ++b) {
    const int64_t block = first_block + b;
    __m512i part[kTokens];
    for (int t = 0; t < kTokens; ++t) {
      part[t] = _mm512_setzero_si512();
      if constexpr (Type::kCorrection == Correction::kOffset) {
        part[t] = Dot::Pairs(part[t], offset,
                             Broadcast32(of_token(y.sum + block, t)));
      }
    }
    for (int i = 0; i < 8; ++i) {
      const __m512i w = _mm512_load_si512(tile.w[8 * b + i]);
      for (int t = 0; t < kTokens; ++t) {
        part[t] = Dot::template Bytes<Type::kWide>(
            part[t], w, Broadcast32(of_token(y.q + 32 * block + 4 * i, t)));
      }
    }
    const __m512 d = _mm512_load_ps(tile.d[b]);
    for (int t = 0; t < kTokens; ++t) {
      const __m512 dy =
          _mm512_castsi512_ps(Broadcast32(of_token(y.scale + block, t)));
      total[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(part[t]),
                                 _mm512_mul_ps(d, dy), total[t]);
      if constexpr (Type::kCorrection == Correction::kMinimum) {
        total[t] = _mm512_fmadd_ps(
            _mm512_load_ps(tile.m[b]),
            _mm512_castsi512_ps(Broadcast32(of_token(y.scaled_sum + block, t))),
            total[t]);
      }
    }
  }
  for (int t = 0; t < kTokens; ++t) _mm512_store_ps(sums[t], total[t]);
}

template <typename Dot, typename Type>
void Rows32(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  constexpr uint64_t kBlockBytes = sizeof(typename Type::Block);
  const int64_t k = args.weight.cols;
  const int64_t blocks = k / 32;
  const uint64_t row_bytes = static_cast<uint64_t>(blocks) * kBlockBytes;
  Tile32 tile;
  Sums sums;
  for (int64_t token = 0; token < args.tokens; token += kTokenTile) {
    const int64_t tokens = Smaller(kTokenTile, args.tokens - token);
    const std::byte* x = args.activations +
                         static_cast<uint64_t>(token) * args.activation_stride;
    for (int64_t row = row_begin; row < row_end; row += kTileRows) {
      const std::byte* data =
          args.weight.data + static_cast<uint64_t>(row) * row_bytes;
      const TileSource rows =
          SourceAt(data, row_bytes, row_end - row,
                   token == 0 && row + kTileRows < args.weight.rows);
      std::memset(sums.value, 0, static_cast<size_t>(tokens) * 64);
      for (int64_t b = 0; b < blocks; b += 8) {
        const int count = static_cast<int>(Smaller(8, blocks - b));
        const uint64_t offset = static_cast<uint64_t>(b) * kBlockBytes;
        Type::kDecode(rows, offset, count, &tile);
        InRegisters(tokens, [&](int64_t t, auto token_count) {
          AddBlocks32<Dot, Type, decltype(token_count)::value>(
              tile, count,
              x + static_cast<uint64_t>(t) * args.activation_stride,
              args.activation_stride, k, b, sums.value + t);
        });
      }
      StoreSums(sums, nullptr, args, row, Smaller(row_end - row, kTileRows),
                token, tokens);
    }
  }
}

// --- The table ---------------------------------------------------------------

template <typename Dot>
void RegisterRows(Ops* ops) {
  const auto set = [ops](DType type, ActivationFormat format,
                         void (*rows)(const MatmulArgs&, int64_t, int64_t)) {
    ops->matmul[static_cast<size_t>(type)].format = format;
    ops->matmul[static_cast<size_t>(type)].rows = rows;
  };
  using enum Correction;
  constexpr ActivationFormat k32 = ActivationFormat::kQ8_32;
  constexpr ActivationFormat k256 = ActivationFormat::kQ8_256;
  set(DType::kQ2_K, k256,
      Rows256<Dot, Type256<BlockQ2_K, DecodeQ2_K, 16, kMinimum>>);
  set(DType::kQ3_K, k256,
      Rows256<Dot, Type256<BlockQ3_K, DecodeQ3_K, 16, kOffset>>);
  set(DType::kQ4_K, k256,
      Rows256<Dot, Type256<BlockQ4_K, DecodeQ4_K, 8, kMinimum>>);
  set(DType::kQ5_K, k256,
      Rows256<Dot, Type256<BlockQ5_K, DecodeQ5_K, 8, kMinimum>>);
  set(DType::kQ6_K, k256,
      Rows256<Dot, Type256<BlockQ6_K, DecodeQ6_K, 16, kOffset>>);
  set(DType::kIQ4_XS, k256,
      Rows256<Dot, Type256<BlockIQ4_XS, DecodeIQ4_XS, 8, kOffset, true>>);
  set(DType::kQ4_0, k32,
      Rows32<Dot, Type32<BlockQ4_0, DecodeQ4_0, kOffset, 8>>);
  set(DType::kQ4_1, k32, Rows32<Dot, Type32<BlockQ4_1, DecodeQ4_1, kMinimum>>);
  set(DType::kQ5_0, k32,
      Rows32<Dot, Type32<BlockQ5_0, DecodeQ5_0, kOffset, 16>>);
  set(DType::kQ5_1, k32, Rows32<Dot, Type32<BlockQ5_1, DecodeQ5_1, kMinimum>>);
  set(DType::kQ8_0, k32,
      Rows32<Dot, Type32<BlockQ8_0, DecodeQ8_0, kOffset, 128, true>>);
  set(DType::kIQ4_NL, k32,
      Rows32<Dot, Type32<BlockIQ4_NL, DecodeIQ4_NL, kOffset, 128, true>>);
  set(DType::kMXFP4, k32,
      Rows32<Dot, Type32<BlockMXFP4, DecodeMXFP4, kOffset, 12>>);
}

}  // namespace
}  // namespace coldstream::avx512

#endif  // COLDSTREAM_KERNELS_CPU_AVX512_MATMUL_ROWS_H_
