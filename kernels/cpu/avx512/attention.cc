// Queries that read the same keys share them: the rows of one call are the
// heads of a group times the tokens of a tile that have the same blocks. Four
// rows by four keys (or 2 x 8, 1 x 16) are held in registers.
//
// Order of a row's sums, the same for every shape of call: q.k over sixteen
// lanes of the head's width, then a tree over the lanes; the weights of a tile
// over sixteen lanes of keys; values key after key.

#if defined(__AVX512F__)

#include "kernels/cpu/avx512/register.h"
//
#include "base/check.h"
#include "kernels/cpu/avx512/exp.h"

namespace coldstream {
namespace {

constexpr int64_t kTile = kKvBlockTokens;
constexpr int64_t kLanes = 16;
constexpr int64_t kMaxRows = 64;
// With more rows than this, or of another type than f16, a tile is widened to
// f32 once, in the scratch.
constexpr int64_t kWidenAboveRows = 8;
constexpr int64_t kScratchFloats = 48 * 1024;
constexpr float kMinusInfinity = -__builtin_inff();

int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

__mmask16 FirstLanes(int64_t n) {
  return static_cast<__mmask16>(n >= kLanes ? 0xffff : (1 << Max(n, 0)) - 1);
}

__m512 Load(const float* p) { return _mm512_loadu_ps(p); }
__m512 Load(const uint16_t* p) {
  return _mm512_cvtph_ps(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
__m512 LoadFirst(__mmask16 mask, const float* p) {
  return _mm512_maskz_loadu_ps(mask, p);
}
__m512 LoadFirst(__mmask16 mask, const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p));
}

// What the rows of one call work on; all in the caller's stack.
struct Rows {
  int64_t count = 0;
  int64_t key_stride = 0;    // floats: key_dim, padded
  int64_t value_stride = 0;  // floats: value_dim, padded
  float* q = nullptr;        // [count, key_stride], zero in the padding
  float* sum = nullptr;      // [count, value_stride]
  float* p = nullptr;        // [count, kTile]: scores, then weights
  float* tile = nullptr;     // [kTile, key or value stride], or null
  bool fetch_ahead = false;  // the next tile, while one is worked on
  int64_t position[kMaxRows];
  int64_t keys[kMaxRows];  // of this tile that the row attends to, 0..kTile
  float max[kMaxRows];
  float weight[kMaxRows];
  float correction[kMaxRows];
};

// Lane i of the result is the sum of a[i]'s lanes, by one fixed tree.
__m512 SumEach(const __m512 a[16]) {
  __m512 b[8];
  for (int i = 0; i < 8; ++i)
    b[i] = _mm512_add_ps(_mm512_unpacklo_ps(a[2 * i], a[2 * i + 1]),
                         _mm512_unpackhi_ps(a[2 * i], a[2 * i + 1]));
  __m512 c[4];
  for (int i = 0; i < 4; ++i) {
    const __m512d x = _mm512_castps_pd(b[2 * i]);
    const __m512d y = _mm512_castps_pd(b[2 * i + 1]);
    c[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
  }
  __m512 d[2];
  for (int i = 0; i < 2; ++i)
    d[i] = _mm512_add_ps(_mm512_shuffle_f32x4(c[2 * i], c[2 * i + 1], 0x88),
                         _mm512_shuffle_f32x4(c[2 * i], c[2 * i + 1], 0xdd));
  return _mm512_add_ps(_mm512_shuffle_f32x4(d[0], d[1], 0x88),
                       _mm512_shuffle_f32x4(d[0], d[1], 0xdd));
}

// scores[r, j] = scale * q[r] . keys[j] for kRows rows and 16 / kRows keys.
template <int kRows, typename T>
void ScoreBlock(const float* q, int64_t q_stride, const T* keys,
                int64_t key_stride, int64_t dim, float scale, float* scores) {
  constexpr int kKeys = 16 / kRows;
  __m512 sum[16];
  for (int i = 0; i < 16; ++i) sum[i] = _mm512_setzero_ps();
  int64_t d = 0;
  for (; d + kLanes <= dim; d += kLanes) {
    __m512 k[kKeys];
    for (int j = 0; j < kKeys; ++j) k[j] = Load(keys + j * key_stride + d);
    for (int r = 0; r < kRows; ++r) {
      const __m512 x = Load(q + r * q_stride + d);
      for (int j = 0; j < kKeys; ++j)
        sum[r * kKeys + j] = _mm512_fmadd_ps(x, k[j], sum[r * kKeys + j]);
    }
  }
  if (d < dim) {
    const __mmask16 mask = FirstLanes(dim - d);
    for (int j = 0; j < kKeys; ++j) {
      const __m512 k = LoadFirst(mask, keys + j * key_stride + d);
      for (int r = 0; r < kRows; ++r)
        sum[r * kKeys + j] =
            _mm512_fmadd_ps(Load(q + r * q_stride + d), k, sum[r * kKeys + j]);
    }
  }
  const __m512 s = _mm512_mul_ps(SumEach(sum), _mm512_set1_ps(scale));
  alignas(64) float all[16];
  _mm512_store_ps(all, s);
  for (int r = 0; r < kRows; ++r)
    __builtin_memcpy(scores + r * kTile, all + r * kKeys,
                     kKeys * sizeof(float));
}

// Scores of rows [row, row + kRows) against the tile's keys.
template <int kRows, typename T>
void Score(const Rows& rows, int64_t row, const T* keys, int64_t key_stride,
           int64_t dim, float scale) {
  int64_t count = 0;
  for (int r = 0; r < kRows; ++r) count = Max(count, rows.keys[row + r]);
  // The last block may score keys past `count`; Weigh leaves them out.
  for (int64_t j = 0; j < count; j += 16 / kRows)
    ScoreBlock<kRows>(rows.q + row * rows.key_stride, rows.key_stride,
                      keys + j * key_stride, key_stride, dim, scale,
                      rows.p + row * kTile + j);
}

// Turns the row's scores into weights, and moves its maximum.
void Weigh(Rows* rows, int64_t row) {
  rows->correction[row] = 1;
  const int64_t count = rows->keys[row];
  if (count == 0) return;
  float* p = rows->p + row * kTile;
  __m512 s[4];
  __m512 max = _mm512_set1_ps(rows->max[row]);
  for (int i = 0; i < 4; ++i) {
    s[i] = _mm512_mask_loadu_ps(_mm512_set1_ps(kMinusInfinity),
                                FirstLanes(count - i * kLanes), p + i * kLanes);
    max = _mm512_max_ps(max, s[i]);
  }
  const float new_max = _mm512_reduce_max_ps(max);
  max = _mm512_set1_ps(new_max);
  for (int i = 0; i < 4; ++i) {
    s[i] = _mm512_maskz_mov_ps(FirstLanes(count - i * kLanes),
                               ExpOfNonPositive(_mm512_sub_ps(s[i], max)));
    _mm512_storeu_ps(p + i * kLanes, s[i]);
  }
  const __m512 sum =
      _mm512_add_ps(_mm512_add_ps(s[0], s[1]), _mm512_add_ps(s[2], s[3]));
  // Exactly zero for the first tile, where the old maximum is -inf.
  const float correction = _mm512_cvtss_f32(
      ExpOfNonPositive(_mm512_sub_ps(_mm512_set1_ps(rows->max[row]), max)));
  rows->weight[row] =
      rows->weight[row] * correction + _mm512_reduce_add_ps(sum);
  rows->correction[row] = correction;
  rows->max[row] = new_max;
}

// sum[r] = sum[r] * correction[r] + the weighted values of keys [begin, end),
// for kRows rows and kChunks chunks of 16 values, the last one masked.
template <int kRows, int kChunks, typename T>
void ValueBlock(const float* p, const float* correction, const T* values,
                int64_t stride, __mmask16 mask, int64_t begin, int64_t end,
                float* sum, int64_t sum_stride) {
  __m512 acc[kRows][kChunks];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kChunks; ++c)
      acc[r][c] = _mm512_mul_ps(Load(sum + r * sum_stride + c * kLanes),
                                _mm512_set1_ps(correction[r]));
  for (int64_t j = begin; j < end; ++j) {
    const T* value = values + j * stride;
    __m512 v[kChunks];
    for (int c = 0; c + 1 < kChunks; ++c) v[c] = Load(value + c * kLanes);
    v[kChunks - 1] = kChunks == 1 ? LoadFirst(mask, value)
                                  : Load(value + (kChunks - 1) * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const __m512 w = _mm512_set1_ps(p[r * kTile + j]);
      for (int c = 0; c < kChunks; ++c)
        acc[r][c] = _mm512_fmadd_ps(w, v[c], acc[r][c]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kChunks; ++c)
      _mm512_storeu_ps(sum + r * sum_stride + c * kLanes, acc[r][c]);
}

// As ValueBlock, over the whole width of the values.
template <int kRows, typename T>
void ValueRange(Rows* rows, int64_t row, const float* correction,
                const T* values, int64_t stride, int64_t dim, int64_t begin,
                int64_t end) {
  const float* p = rows->p + row * kTile;
  float* sum = rows->sum + row * rows->value_stride;
  int64_t d = 0;
  for (; d + 4 * kLanes <= dim; d += 4 * kLanes)
    ValueBlock<kRows, 4>(p, correction, values + d, stride, 0xffff, begin, end,
                         sum + d, rows->value_stride);
  for (; d < dim; d += kLanes)
    ValueBlock<kRows, 1>(p, correction, values + d, stride, FirstLanes(dim - d),
                         begin, end, sum + d, rows->value_stride);
}

// Rows [row, row + kRows): together up to the shortest, then one by one, so
// that a masked key adds nothing, not even a zero.
template <int kRows, typename T>
void AddValues(Rows* rows, int64_t row, const T* values, int64_t stride,
               int64_t dim) {
  int64_t common = kTile;
  for (int r = 0; r < kRows; ++r) common = Min(common, rows->keys[row + r]);
  ValueRange<kRows>(rows, row, rows->correction + row, values, stride, dim, 0,
                    common);
  const float one = 1;
  for (int r = 0; r < kRows; ++r)
    if (rows->keys[row + r] > common)
      ValueRange<1>(rows, row + r, &one, values, stride, dim, common,
                    rows->keys[row + r]);
}

void WidenHalves(const uint16_t* in, int64_t count, int64_t dim, float* out,
                 int64_t stride) {
  for (int64_t j = 0; j < count; ++j)
    for (int64_t d = 0; d < dim; d += kLanes)
      _mm512_storeu_ps(out + j * stride + d,
                       LoadFirst(FirstLanes(dim - d), in + j * dim + d));
}

// Scaled and rounded to f16, which is what the tile stands for.
__m512 LoadFirstQ8(__mmask16 mask, const std::byte* q, __m512 scale) {
  const __m512 value = _mm512_mul_ps(
      _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask, q))),
      scale);
  return _mm512_cvtph_ps(_mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
}

void WidenQ8(const std::byte* tile, int64_t count, int64_t dim, float* out,
             int64_t stride) {
  const auto* scales =
      reinterpret_cast<const uint16_t*>(tile + KvScalesOffset(dim));
  for (int64_t j = 0; j < count; ++j) {
    const std::byte* const q = tile + j * dim;
    for (int64_t d = 0; d < dim; d += kKvScaleValues, ++scales) {
      const __m512 scale = _mm512_set1_ps(_cvtsh_ss(*scales));
      const int64_t end = Min(d + kKvScaleValues, dim);
      for (int64_t i = d; i < end; i += kLanes)
        _mm512_storeu_ps(out + j * stride + i,
                         LoadFirstQ8(FirstLanes(dim - i), q + i, scale));
    }
  }
}

// [count, dim] of a tile to [count, stride] f32, zero in the padding.
void Widen(KvType type, const std::byte* tile, int64_t count, int64_t dim,
           float* out, int64_t stride) {
  if (type == KvType::kQ8_0) {
    WidenQ8(tile, count, dim, out, stride);
  } else {
    WidenHalves(reinterpret_cast<const uint16_t*>(tile), count, dim, out,
                stride);
  }
}

template <typename T>
void ScoreAll(const AttentionArgs& args, const Rows& rows, const T* keys,
              int64_t stride) {
  int64_t row = 0;
  for (; row + 4 <= rows.count; row += 4)
    Score<4>(rows, row, keys, stride, args.key_dim, args.scale);
  if (row + 2 <= rows.count) {
    Score<2>(rows, row, keys, stride, args.key_dim, args.scale);
    row += 2;
  }
  if (row < rows.count)
    Score<1>(rows, row, keys, stride, args.key_dim, args.scale);
}

template <typename T>
void AddAllValues(const AttentionArgs& args, Rows* rows, const T* values,
                  int64_t stride) {
  int64_t row = 0;
  for (; row + 4 <= rows->count; row += 4)
    AddValues<4>(rows, row, values, stride, args.value_dim);
  if (row + 2 <= rows->count) {
    AddValues<2>(rows, row, values, stride, args.value_dim);
    row += 2;
  }
  if (row < rows->count)
    AddValues<1>(rows, row, values, stride, args.value_dim);
}

// The key and value tile of one block, for the run's KV head.
struct Tile {
  const std::byte* keys;
  const std::byte* values;
};

void AddTile(const AttentionArgs& args, Rows* rows, int64_t base,
             const Tile& tile) {
  int64_t used = 0;
  for (int64_t r = 0; r < rows->count; ++r) {
    rows->keys[r] = Min(Max(rows->position[r] - base + 1, 0), kTile);
    used = Max(used, rows->keys[r]);
  }
  used = RoundUp(used, 16);  // what Score may read
  if (rows->tile != nullptr) {
    Widen(args.kv_type, tile.keys, used, args.key_dim, rows->tile,
          rows->key_stride);
    ScoreAll(args, *rows, rows->tile, rows->key_stride);
  } else {
    ScoreAll(args, *rows, reinterpret_cast<const uint16_t*>(tile.keys),
             args.key_dim);
  }
  for (int64_t r = 0; r < rows->count; ++r) Weigh(rows, r);
  if (rows->tile != nullptr) {
    Widen(args.kv_type, tile.values, used, args.value_dim, rows->tile,
          rows->value_stride);
    AddAllValues(args, rows, rows->tile, rows->value_stride);
  } else {
    AddAllValues(args, rows, reinterpret_cast<const uint16_t*>(tile.values),
                 args.value_dim);
  }
}

// Row r of a run is head first_head + r % group of token r / group.
struct Run {
  int64_t kv_head;
  int64_t group;
  int64_t token_begin;  // tokens that have the same blocks
};

int64_t OutputRow(const AttentionArgs& args, const Run& run, int64_t r) {
  return (run.token_begin + r / run.group) * args.heads +
         run.kv_head * run.group + r % run.group;
}

void LoadRows(const AttentionArgs& args, const Run& run, int64_t begin,
              Rows* rows) {
  for (int64_t r = 0; r < rows->count; ++r) {
    const float* q = args.q + OutputRow(args, run, begin + r) * args.key_dim;
    for (int64_t d = 0; d < rows->key_stride; d += kLanes)
      _mm512_storeu_ps(rows->q + r * rows->key_stride + d,
                       LoadFirst(FirstLanes(args.key_dim - d), q + d));
    for (int64_t d = 0; d < rows->value_stride; d += kLanes)
      _mm512_storeu_ps(rows->sum + r * rows->value_stride + d,
                       _mm512_setzero_ps());
    rows->position[r] =
        args.tokens[run.token_begin + (begin + r) / run.group].position;
    rows->max[r] = kMinusInfinity;
    rows->weight[r] = 0;
  }
}

void StoreRows(const AttentionArgs& args, const Run& run, int64_t begin,
               const Rows& rows) {
  for (int64_t r = 0; r < rows.count; ++r) {
    float* out = args.out + OutputRow(args, run, begin + r) * args.value_dim;
    const __m512 weight = _mm512_set1_ps(rows.weight[r]);
    for (int64_t d = 0; d < args.value_dim; d += kLanes)
      _mm512_mask_storeu_ps(
          out + d, FirstLanes(args.value_dim - d),
          _mm512_div_ps(Load(rows.sum + r * rows.value_stride + d), weight));
  }
}

Tile TileAt(const AttentionArgs& args, const Run& run, int64_t block) {
  const AttentionToken& token = args.tokens[run.token_begin];
  return {token.key_blocks[block] +
              run.kv_head * KvTileBytes(args.kv_type, args.key_dim),
          token.value_blocks[block] +
              run.kv_head * KvTileBytes(args.kv_type, args.value_dim)};
}

// With few rows the next tile's bytes are what a tile waits for, and blocks
// lie apart, so that the CPU does not foresee them: 15-20 % of the time of one
// token over a cache larger than L2, measured.
void Prefetch(const std::byte* p, int64_t bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t i = 0; i < bytes; i += kLine)
    _mm_prefetch(reinterpret_cast<const char*>(p + i), _MM_HINT_T1);
}

// Rows [begin, begin + rows->count) of the run, over all their tiles.
void AttendRows(const AttentionArgs& args, const Run& run, int64_t begin,
                Rows* rows) {
  LoadRows(args, run, begin, rows);
  int64_t last = 0;
  for (int64_t r = 0; r < rows->count; ++r) last = Max(last, rows->position[r]);
  const int64_t blocks = last / kTile + 1;
  for (int64_t block = 0; block < blocks; ++block) {
    if (rows->fetch_ahead && block + 1 < blocks) {
      const Tile next = TileAt(args, run, block + 1);
      Prefetch(next.keys, KvTileBytes(args.kv_type, args.key_dim));
      Prefetch(next.values, KvTileBytes(args.kv_type, args.value_dim));
    }
    AddTile(args, rows, block * kTile, TileAt(args, run, block));
  }
  StoreRows(args, run, begin, *rows);
}

void AttendRun(const AttentionArgs& args, const Run& run, int64_t token_end) {
  alignas(64) float scratch[kScratchFloats];
  Rows rows;
  rows.key_stride = RoundUp(args.key_dim, kLanes);
  rows.value_stride = RoundUp(args.value_dim, kLanes);
  const int64_t total = (token_end - run.token_begin) * run.group;
  const int64_t tile = kTile * Max(rows.key_stride, rows.value_stride);
  const bool fits = tile <= kScratchFloats * 3 / 4;
  CHECK(fits || args.kv_type == KvType::kF16);
  rows.fetch_ahead = total <= kWidenAboveRows || !fits;
  const bool widen =
      args.kv_type != KvType::kF16 || (total > kWidenAboveRows && fits);
  const int64_t row_floats = rows.key_stride + rows.value_stride + kTile;
  const int64_t room = kScratchFloats - (widen ? tile : 0);
  const int64_t capacity = Min(room / row_floats, kMaxRows);
  CHECK(capacity > 0);
  rows.q = scratch;
  rows.sum = rows.q + capacity * rows.key_stride;
  rows.p = rows.sum + capacity * rows.value_stride;
  rows.tile = widen ? rows.p + capacity * kTile : nullptr;
  for (int64_t begin = 0; begin < total; begin += capacity) {
    rows.count = Min(capacity, total - begin);
    AttendRows(args, run, begin, &rows);
  }
}

void Attention(const AttentionArgs& args, int64_t item_begin,
               int64_t item_end) {
  const int64_t token_tiles =
      (args.token_count + kAttentionTokenTile - 1) / kAttentionTokenTile;
  for (int64_t item = item_begin; item < item_end; ++item) {
    int64_t begin = item % token_tiles * kAttentionTokenTile;
    const int64_t end = Min(begin + kAttentionTokenTile, args.token_count);
    while (begin < end) {
      const AttentionToken& first = args.tokens[begin];
      int64_t next = begin + 1;
      while (next < end && args.tokens[next].key_blocks == first.key_blocks &&
             args.tokens[next].value_blocks == first.value_blocks)
        ++next;
      AttendRun(args, {item / token_tiles, args.heads / args.kv_heads, begin},
                next);
      begin = next;
    }
  }
}

}  // namespace

void RegisterAvx512Attention(Ops* ops) { ops->attention = Attention; }

}  // namespace coldstream

#endif  // __AVX512F__
