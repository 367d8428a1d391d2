// Attention of many tokens of one sequence: tiles of 64 query rows against
// tiles of 64 keys.
//
// A row is a token and one of the heads that share a KV head. Keys, queries and
// values pass through shared memory in chunks; a thread holds four rows by four
// keys of scores, then four rows by some columns of sums. Splits are added up
// in the output as they end.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRows = 64;
static_assert(kTileTokens == kRows && kTileKeys == 64);
// Values of a query or key in a chunk, and from one value's row of a chunk or
// one query's row of scores to the next: 16-byte loads, few bank conflicts.
constexpr int kChunkDims = 32;
constexpr int kStride = 68;
constexpr int kChunkKeys = 16;  // of values
constexpr int kChunkFloats = 2 * kChunkDims * kStride;
static_assert(kChunkKeys * kMostHeadDim <= kChunkFloats);
constexpr int64_t kSplitTiles = kSplitKeys / kTileKeys;

// Where a thread stands in the 16 x 16 of a tile; a warp is 4 rows x 8 columns,
// so that its 16-byte loads are one pass over the banks.
struct Place {
  int row;     // first of four rows
  int column;  // of sixteen, in units of four values
};
__device__ Place PlaceOf() {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return {(warp / 2 * 4 + lane / 8) * 4, warp % 2 * 8 + lane % 8};
}

// Rows of a block: head_count heads (a power of two) of kRows / head_count
// tokens. Row r is head r % head_count of token r / head_count.
struct Rows {
  int64_t token;  // first
  int tokens;     // that exist; 0: nothing to do
  int64_t head;   // first
  int head_count;
  int64_t kv_head;

  __device__ bool Exists(int row) const { return row / head_count < tokens; }
  __device__ int64_t TokenOf(int row) const { return token + row / head_count; }
  // Index in [tokens, heads].
  __device__ int64_t IndexOf(int row, int64_t heads) const {
    return TokenOf(row) * heads + head + row % head_count;
  }
};

// blockIdx.x: the tile of tokens; blockIdx.y: KV head, heads of its group, part
// of the tile, which make as many blocks as there are heads.
__device__ Rows RowsOf(const AttentionCall& call) {
  const PrefillTile tile = call.work.tiles[blockIdx.x];
  const int group = static_cast<int>(call.layer.heads / call.layer.kv_heads);
  Rows rows;
  rows.head_count = 1;
  while (rows.head_count < 8 && group % (rows.head_count * 2) == 0)
    rows.head_count *= 2;
  const int in_group = static_cast<int>(blockIdx.y) % group;
  const int part = in_group % rows.head_count;
  const int part_tokens = kRows / rows.head_count;
  rows.kv_head = static_cast<int>(blockIdx.y) / group;
  rows.head =
      rows.kv_head * group + in_group / rows.head_count * rows.head_count;
  rows.token = tile.token + part * part_tokens;
  rows.tokens = max(0, min(part_tokens, tile.count - part * part_tokens));
  return rows;
}

// A block's shared memory.
struct Shared {
  float* chunk;      // queries and keys [kChunkDims, kStride] each, or values
  float* scores;     // [kRows, kStride], then their weights
  RowState* split;   // of each row, of the split at hand
  RowState* before;  // and of all splits before it
  float* corrections;
};

// Values [first, first + kChunkDims) of all queries and keys, transposed;
// zeros for what does not exist.
template <KvType type>
__device__ void LoadQueriesAndKeys(const AttentionCall& call, const Rows& rows,
                                   const std::byte* keys, int key_count,
                                   int first, float* chunk) {
  const int row = static_cast<int>(threadIdx.x) % kRows;
  const int part = static_cast<int>(threadIdx.x) / kRows;
  const int dim = static_cast<int>(call.layer.key_dim);
  const int at = first + part * 8;
  float values[8] = {};
  if (row < key_count && at < dim)
    ToFloats(KvPart<type>::Load(keys, row, at / 8, dim).Halves(), values);
  const bool exists = rows.Exists(row);
  const float* const q =
      exists ? call.q + rows.IndexOf(row, call.layer.heads) * dim : nullptr;
  float* const q_chunk = chunk + part * 8 * kStride + row;
  float* const key_chunk = q_chunk + kChunkDims * kStride;
  COLDSTREAM_UNROLL
  for (int i = 0; i < 8; ++i) {
    q_chunk[i * kStride] = exists && at + i < dim ? q[at + i] : 0.0f;
    key_chunk[i * kStride] = values[i];
  }
}

// One step of the chains of four rows by four keys.
__device__ void StepScores(const float4& rows, const float4& keys,
                           float (*sums)[4]) {
  const float row[4] = {rows.x, rows.y, rows.z, rows.w};
  COLDSTREAM_UNROLL
  for (int r = 0; r < 4; ++r) {
    sums[r][0] = fmaf(row[r], keys.x, sums[r][0]);
    sums[r][1] = fmaf(row[r], keys.y, sums[r][1]);
    sums[r][2] = fmaf(row[r], keys.z, sums[r][2]);
    sums[r][3] = fmaf(row[r], keys.w, sums[r][3]);
  }
}

// shared.scores of all rows and the tile's keys.
template <KvType type>
__device__ void ScoreTile(const AttentionCall& call, const Rows& rows,
                          const std::byte* keys, int key_count, float scale,
                          const Shared& shared) {
  const Place place = PlaceOf();
  float sums[4][4] = {};
  for (int first = 0; first < call.layer.key_dim; first += kChunkDims) {
    __syncthreads();  // the chunk before has been read
    LoadQueriesAndKeys<type>(call, rows, keys, key_count, first, shared.chunk);
    __syncthreads();
    const float* const q = shared.chunk + place.row;
    const float* const k =
        shared.chunk + kChunkDims * kStride + place.column * 4;
    COLDSTREAM_UNROLL
    for (int i = 0; i < kChunkDims; ++i)
      StepScores(*reinterpret_cast<const float4*>(q + i * kStride),
                 *reinterpret_cast<const float4*>(k + i * kStride), sums);
  }
  COLDSTREAM_UNROLL
  for (int r = 0; r < 4; ++r)
    *reinterpret_cast<float4*>(shared.scores + (place.row + r) * kStride +
                               place.column * 4) =
        make_float4(sums[r][0] * scale, sums[r][1] * scale, sums[r][2] * scale,
                    sums[r][3] * scale);
}

// Weights of the tile that begins at `key`; a warp takes its share of rows.
__device__ void WeighTile(const AttentionCall& call, const Rows& rows,
                          int64_t key, const Shared& shared) {
  constexpr int kWarpRows = kRows / (kThreads / 32);
  const int first = static_cast<int>(threadIdx.x) / 32 * kWarpRows;
  for (int row = first; row < first + kWarpRows; ++row) {
    const int count =
        rows.Exists(row)
            ? KeysOfTile(call.tokens.positions[rows.TokenOf(row)], key)
            : 0;
    const float correction =
        TileWeights(count, shared.scores + row * kStride, shared.split + row);
    if (threadIdx.x % 32 == 0) shared.corrections[row] = correction;
  }
}

// Values of keys [first, first + kChunkKeys), [kChunkKeys, 64 kColumns]; zeros
// for what does not exist.
template <KvType type, int kColumns>
__device__ void LoadValues(const std::byte* values, int key_count, int dim,
                           int first, float* chunk) {
  constexpr int kRowParts = 8 * kColumns;
  for (int part = static_cast<int>(threadIdx.x); part < kChunkKeys * kRowParts;
       part += kThreads) {
    const int key = part / kRowParts;
    const int at = part % kRowParts;
    float floats[8] = {};
    if (first + key < key_count && at * 8 < dim)
      ToFloats(KvPart<type>::Load(values, first + key, at, dim).Halves(),
               floats);
    float4* const to = reinterpret_cast<float4*>(chunk + part * 8);
    to[0] = make_float4(floats[0], floats[1], floats[2], floats[3]);
    to[1] = make_float4(floats[4], floats[5], floats[6], floats[7]);
  }
}

// A thread's sums of weighted values: four rows, by columns
// 64 i + 4 place.column + {0, 1, 2, 3} for i < kColumns.
template <int kColumns>
struct ValueSums {
  float sums[4][kColumns][4] = {};

  __device__ void Rescale(const Shared& shared, const Place& place) {
    COLDSTREAM_UNROLL
    for (int r = 0; r < 4; ++r) {
      const float correction = shared.corrections[place.row + r];
      COLDSTREAM_UNROLL
      for (int i = 0; i < 4 * kColumns; ++i)
        sums[r][i / 4][i % 4] *= correction;
    }
  }
  // One step of all chains.
  __device__ void Step(const float (&weights)[4], const float* values) {
    COLDSTREAM_UNROLL
    for (int i = 0; i < kColumns; ++i) {
      const float4 v = *reinterpret_cast<const float4*>(values + i * 64);
      COLDSTREAM_UNROLL
      for (int r = 0; r < 4; ++r) {
        sums[r][i][0] = fmaf(weights[r], v.x, sums[r][i][0]);
        sums[r][i][1] = fmaf(weights[r], v.y, sums[r][i][1]);
        sums[r][i][2] = fmaf(weights[r], v.z, sums[r][i][2]);
        sums[r][i][3] = fmaf(weights[r], v.w, sums[r][i][3]);
      }
    }
  }
  // All keys of the tile.
  template <KvType type>
  __device__ void AddTile(const Shared& shared, const Place& place,
                          const std::byte* values, int key_count, int dim) {
    Rescale(shared, place);
    for (int first = 0; first < key_count; first += kChunkKeys) {
      __syncthreads();  // the chunk before has been read
      LoadValues<type, kColumns>(values, key_count, dim, first, shared.chunk);
      __syncthreads();
      const float* const weights = shared.scores + place.row * kStride + first;
      COLDSTREAM_UNROLL
      for (int key = 0; key < kChunkKeys; ++key) {
        const float four[4] = {weights[key], weights[kStride + key],
                               weights[2 * kStride + key],
                               weights[3 * kStride + key]};
        Step(four, shared.chunk + key * 64 * kColumns + place.column * 4);
      }
    }
  }
};

// Adds the split to the output, which holds the sums of those before; then all
// begins anew. `last`: what the output holds becomes the softmax.
template <int kColumns>
__device__ void EndSplit(const AttentionCall& call, const Rows& rows,
                         const Shared& shared, bool last,
                         ValueSums<kColumns>* values) {
  const Place place = PlaceOf();
  const int64_t dim = call.layer.value_dim;
  COLDSTREAM_UNROLL
  for (int r = 0; r < 4; ++r) {
    const int row = place.row + r;
    if (!rows.Exists(row)) continue;
    const RowState before = shared.before[row];
    const RowState split = shared.split[row];
    const bool first = before.weight == 0.0f;  // a split with keys weighs >= 1
    const bool none = split.weight == 0.0f;
    const SplitMerge merge = MergeOf(before, split);
    const float weight = first  ? split.weight
                         : none ? before.weight
                                : MergeStates(merge, before, split).weight;
    float* const out = call.out + rows.IndexOf(row, call.layer.heads) * dim;
    COLDSTREAM_UNROLL
    for (int i = 0; i < 4 * kColumns; ++i) {
      const int column = i / 4 * 64 + place.column * 4 + i % 4;
      if (column >= dim) continue;
      float sum = values->sums[r][i / 4][i % 4];
      if (!first) sum = none ? out[column] : MergeSums(merge, out[column], sum);
      out[column] = last ? Softmax(sum, weight) : sum;
    }
  }
  *values = {};
  __syncthreads();  // the states have been read
  const int row = static_cast<int>(threadIdx.x);
  if (row >= kRows) return;
  const RowState before = shared.before[row];
  const RowState split = shared.split[row];
  if (before.weight == 0.0f)
    shared.before[row] = split;
  else if (split.weight != 0.0f)
    shared.before[row] = MergeStates(MergeOf(before, split), before, split);
  shared.split[row] = NoKeys();
}

__device__ int64_t LastPosition(const AttentionCall& call, const Rows& rows) {
  int64_t last = 0;
  for (int t = 0; t < rows.tokens; ++t)
    last = max(last, call.tokens.positions[rows.token + t]);
  return last;
}

template <KvType type, int kColumns>
__global__ void __launch_bounds__(kThreads, 2)
    PrefillKernel(AttentionCall call, float scale) {
  COLDSTREAM_SHARED(float4, chunk, kChunkFloats / 4);
  COLDSTREAM_SHARED(float4, scores, kRows * kStride / 4);
  COLDSTREAM_SHARED(RowState, split, kRows);
  COLDSTREAM_SHARED(RowState, before, kRows);
  COLDSTREAM_SHARED(float, corrections, kRows);
  const Rows rows = RowsOf(call);
  if (rows.tokens == 0) return;
  const Shared shared = {reinterpret_cast<float*>(&chunk[0]),
                         reinterpret_cast<float*>(&scores[0]), split, before,
                         corrections};
  if (threadIdx.x < kRows) split[threadIdx.x] = before[threadIdx.x] = NoKeys();
  const int64_t last_position = LastPosition(call, rows);
  const int64_t last = last_position / kTileKeys;
  const int32_t sequence = call.tokens.sequence[rows.token];
  const int dim = static_cast<int>(call.layer.value_dim);
  ValueSums<kColumns> values;
  for (int64_t tile = 0; tile <= last; ++tile) {
    const TileRows from =
        RowsOfTile<type>(call.layer, call.tokens, sequence, tile, rows.kv_head);
    const int count = KeysOfTile(last_position, tile * kTileKeys);
    ScoreTile<type>(call, rows, from.keys, count, scale, shared);
    __syncthreads();
    WeighTile(call, rows, tile * kTileKeys, shared);
    __syncthreads();
    values.template AddTile<type>(shared, PlaceOf(), from.values, count, dim);
    if (tile == last || (tile + 1) % kSplitTiles == 0)
      EndSplit<kColumns>(call, rows, shared, tile == last, &values);
  }
}

template <KvType type>
Status LaunchType(const AttentionCall& call, float scale, Stream* stream) {
  const dim3 grid(Blocks(call.work.tile_count, 1), Blocks(call.layer.heads, 1));
  if (call.layer.value_dim <= 64)
    return Launch<PrefillKernel<type, 1>>(grid, kThreads, 0, stream, call,
                                          scale);
  if (call.layer.value_dim <= 128)
    return Launch<PrefillKernel<type, 2>>(grid, kThreads, 0, stream, call,
                                          scale);
  return Launch<PrefillKernel<type, 4>>(grid, kThreads, 0, stream, call, scale);
}

}  // namespace

Status AttendPrefill(const AttentionCall& call, float scale, Stream* stream) {
  if (call.work.tile_count == 0) return absl::OkStatus();
  return call.layer.type == KvType::kF16
             ? LaunchType<KvType::kF16>(call, scale, stream)
             : LaunchType<KvType::kQ8_0>(call, scale, stream);
}

}  // namespace coldstream::cuda
