// Products of F32, F16 and BF16 weights with float activations.
//
// A (row, token) adds its products in sixteen lanes by column, one fused
// multiply-add after the other, and the lanes at the end. Four rows by up to
// six tokens share each load and conversion of weights.

#if defined(__AVX512F__)

#include <immintrin.h>

#include "kernels/cpu/avx512/register.h"

namespace coldstream {
namespace {

constexpr int64_t kLanes = 16;
constexpr int kRows = 4;
constexpr int kMaxTokens = 6;

struct F32 {
  static constexpr int64_t kBytes = 4;
  static __m512 Load(const std::byte* p) {
    return _mm512_loadu_ps(reinterpret_cast<const float*>(p));
  }
  static __m512 LoadFirst(__mmask16 mask, const std::byte* p) {
    return _mm512_maskz_loadu_ps(mask, p);
  }
};

struct F16 {
  static constexpr int64_t kBytes = 2;
  static __m512 Load(const std::byte* p) {
    return _mm512_cvtph_ps(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static __m512 LoadFirst(__mmask16 mask, const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p));
  }
};

struct BF16 {
  static constexpr int64_t kBytes = 2;
  static __m512 Widen(__m256i v) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
  }
  static __m512 Load(const std::byte* p) {
    return Widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static __m512 LoadFirst(__mmask16 mask, const std::byte* p) {
    return Widen(_mm256_maskz_loadu_epi16(mask, p));
  }
};

const float* TokenRow(const MatmulArgs& args, int64_t token) {
  return reinterpret_cast<const float*>(
      args.activations + static_cast<uint64_t>(token) * args.activation_stride);
}

// kRows rows from `row` (of which `rows` exist) for kTokens tokens. `ahead`:
// rows whose bytes are fetched meanwhile, at the same columns.
template <typename Weight, int kTokens>
void Tile(const MatmulArgs& args, int64_t row, int64_t rows, int64_t token,
          int64_t ahead) {
  const int64_t k = args.weight.cols;
  const int64_t row_bytes = k * Weight::kBytes;
  const std::byte* w[kRows];
  for (int r = 0; r < kRows; ++r)
    w[r] = args.weight.data + (row + (r < rows ? r : rows - 1)) * row_bytes;
  const float* x[kTokens];
  for (int t = 0; t < kTokens; ++t) x[t] = TokenRow(args, token + t);
  __m512 sums[kRows][kTokens];
  for (int r = 0; r < kRows; ++r)
    for (int t = 0; t < kTokens; ++t) sums[r][t] = _mm512_setzero_ps();
  int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    __m512 weight[kRows];
    for (int r = 0; r < kRows; ++r) {
      weight[r] = Weight::Load(w[r] + i * Weight::kBytes);
      if (ahead > 0) {
        _mm_prefetch(reinterpret_cast<const char*>(w[r] + i * Weight::kBytes) +
                         ahead * row_bytes,
                     _MM_HINT_T0);
      }
    }
    for (int t = 0; t < kTokens; ++t) {
      const __m512 y = _mm512_loadu_ps(x[t] + i);
      for (int r = 0; r < kRows; ++r)
        sums[r][t] = _mm512_fmadd_ps(weight[r], y, sums[r][t]);
    }
  }
  if (i < k) {
    const __mmask16 mask = static_cast<__mmask16>((1 << (k - i)) - 1);
    for (int r = 0; r < kRows; ++r) {
      const __m512 weight = Weight::LoadFirst(mask, w[r] + i * Weight::kBytes);
      for (int t = 0; t < kTokens; ++t) {
        sums[r][t] = _mm512_fmadd_ps(
            weight, _mm512_maskz_loadu_ps(mask, x[t] + i), sums[r][t]);
      }
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    float* out = args.out + (token + t) * args.out_stride + row;
    for (int r = 0; r < kRows; ++r)
      if (r < rows) out[r] = _mm512_reduce_add_ps(sums[r][t]);
  }
}

template <typename Weight>
void Rows(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; row += kRows) {
    const int64_t rows = row_end - row < kRows ? row_end - row : kRows;
    const int64_t ahead = row + 2 * kRows <= row_end ? kRows : 0;
    int64_t t = 0;
    for (; t + kMaxTokens <= args.tokens; t += kMaxTokens)
      Tile<Weight, kMaxTokens>(args, row, rows, t, t == 0 ? ahead : 0);
    const int64_t next = t == 0 ? ahead : 0;
    switch (args.tokens - t) {
      case 1:
        Tile<Weight, 1>(args, row, rows, t, next);
        break;
      case 2:
        Tile<Weight, 2>(args, row, rows, t, next);
        break;
      case 3:
        Tile<Weight, 3>(args, row, rows, t, next);
        break;
      case 4:
        Tile<Weight, 4>(args, row, rows, t, next);
        break;
      case 5:
        Tile<Weight, 5>(args, row, rows, t, next);
        break;
      default:
        break;
    }
  }
}

}  // namespace

void RegisterAvx512FloatMatmul(Ops* ops) {
  ops->matmul[static_cast<size_t>(DType::kF32)].rows = Rows<F32>;
  ops->matmul[static_cast<size_t>(DType::kF16)].rows = Rows<F16>;
  ops->matmul[static_cast<size_t>(DType::kBF16)].rows = Rows<BF16>;
}

}  // namespace coldstream

#endif  // __AVX512F__
