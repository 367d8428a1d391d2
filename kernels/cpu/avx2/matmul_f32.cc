// Products with F32, F16 and BF16 weights: float activations, float sums.
//
// Order of a sum, the same for every shape of call: sixteen lanes along k (two
// vectors), then a tree over the lanes. Two rows by three tokens are held in
// registers, four rows where only one token is left.

#if defined(__AVX2__)

#include "kernels/cpu/avx2/register.h"
//
#include "kernels/cpu/avx2/lanes.h"

namespace coldstream {
namespace {

constexpr int64_t kStep = 2 * kLanes;
// Rows that stay in the cache while all tokens pass by.
constexpr int64_t kRowChunkBytes = 128 * 1024;

struct F32 {
  using Value = float;
  static __m256 Load(const float* p) { return _mm256_loadu_ps(p); }
};

struct F16 {
  using Value = uint16_t;
  static __m256 Load(const uint16_t* p) {
    return _mm256_cvtph_ps(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
};

struct BF16 {
  using Value = uint16_t;
  static __m256 Load(const uint16_t* p) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
};

// The first n weights, zero behind them.
template <typename Type>
__m256 LoadFirstWeights(const typename Type::Value* p, int64_t n) {
  if (n >= kLanes) return Type::Load(p);
  typename Type::Value last[kLanes] = {};
  __builtin_memcpy(last, p, static_cast<size_t>(n) * sizeof(last[0]));
  return Type::Load(last);
}

// kRows x kTokens results, from rows `row`... and tokens `token`...
template <typename Type, int kRows, int kTokens>
void Block(const MatmulArgs& args, int64_t row, int64_t token) {
  using Value = typename Type::Value;
  const int64_t k = args.weight.cols;
  const Value* w[kRows];
  const float* x[kTokens];
  for (int r = 0; r < kRows; ++r)
    w[r] = reinterpret_cast<const Value*>(args.weight.data) + (row + r) * k;
  for (int t = 0; t < kTokens; ++t)
    x[t] = reinterpret_cast<const float*>(args.activations +
                                          static_cast<uint64_t>(token + t) *
                                              args.activation_stride);
  __m256 sum[2][kRows][kTokens];
  for (int half = 0; half < 2; ++half)
    for (int r = 0; r < kRows; ++r)
      for (int t = 0; t < kTokens; ++t) sum[half][r][t] = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + kStep <= k; i += kStep) {
    for (int half = 0; half < 2; ++half) {
      const int64_t at = i + half * kLanes;
      __m256 v[kRows];
      for (int r = 0; r < kRows; ++r) v[r] = Type::Load(w[r] + at);
      for (int t = 0; t < kTokens; ++t) {
        const __m256 u = _mm256_loadu_ps(x[t] + at);
        for (int r = 0; r < kRows; ++r)
          sum[half][r][t] = _mm256_fmadd_ps(v[r], u, sum[half][r][t]);
      }
    }
  }
  for (int half = 0; half < 2 && i < k; ++half, i += kLanes)
    for (int r = 0; r < kRows; ++r)
      for (int t = 0; t < kTokens; ++t)
        sum[half][r][t] =
            _mm256_fmadd_ps(LoadFirstWeights<Type>(w[r] + i, k - i),
                            LoadFirst(x[t] + i, k - i), sum[half][r][t]);
  for (int r = 0; r < kRows; ++r)
    for (int t = 0; t < kTokens; ++t)
      args.out[(token + t) * args.out_stride + row + r] =
          SumLanes(_mm256_add_ps(sum[0][r][t], sum[1][r][t]));
}

template <typename Type, int kRows, int kTokens>
int64_t RowBlocks(const MatmulArgs& args, int64_t row, int64_t end,
                  int64_t token) {
  for (; row + kRows <= end; row += kRows)
    Block<Type, kRows, kTokens>(args, row, token);
  return row;
}

template <typename Type>
void Chunk(const MatmulArgs& args, int64_t begin, int64_t end) {
  int64_t token = 0;
  for (; token + 3 <= args.tokens; token += 3) {
    const int64_t row = RowBlocks<Type, 2, 3>(args, begin, end, token);
    RowBlocks<Type, 1, 3>(args, row, end, token);
  }
  for (; token < args.tokens; ++token) {
    const int64_t row = RowBlocks<Type, 4, 1>(args, begin, end, token);
    RowBlocks<Type, 1, 1>(args, row, end, token);
  }
}

template <typename Type>
void Rows(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  const int64_t row_bytes =
      args.weight.cols * static_cast<int64_t>(sizeof(typename Type::Value));
  const int64_t fit = kRowChunkBytes / row_bytes;
  const int64_t chunk = fit > 4 ? fit / 4 * 4 : 4;
  for (int64_t begin = row_begin; begin < row_end; begin += chunk) {
    const int64_t end = begin + chunk;
    Chunk<Type>(args, begin, end < row_end ? end : row_end);
  }
}

}  // namespace

void RegisterAvx2MatmulF32(Ops* ops) {
  ops->matmul[static_cast<size_t>(DType::kF32)].rows = Rows<F32>;
  ops->matmul[static_cast<size_t>(DType::kF16)].rows = Rows<F16>;
  ops->matmul[static_cast<size_t>(DType::kBF16)].rows = Rows<BF16>;
}

}  // namespace coldstream

#endif  // __AVX2__
