// Attention of single tokens: one split of keys for the heads that share them.
//
// Bound by the reading of keys and values. Each tile is read once for all query
// heads of its KV head, by 16-byte loads that are in flight while the tile
// before is worked on. Scores: a lane takes a key, a warp some of the heads.
// Values: a thread takes some columns of some heads.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
// Threads that carry one row of a tile from global to shared memory.
constexpr int kRowThreads = 4;
constexpr int kRowsAtOnce = kThreads / kRowThreads;

// How kRows query heads of at most kWidth values are shared out.
template <int kRows, int kWidth>
struct Shares {
  // Scores: sets of rows, times the two halves of a tile's keys, to the warps.
  static constexpr int kSetRows = kRows > 1 ? kRows / 2 : 1;
  static constexpr int kUnits = kRows / kSetRows * 2;
  // Sums of values: rows to the warps, or a row to several.
  static constexpr int kWarpsPerRow = kRows < kWarps ? kWarps / kRows : 1;
  static constexpr int kWarpRows = kRows < kWarps ? 1 : kRows / kWarps;
  static constexpr int kColumnThreads = 32 * kWarpsPerRow;
  static constexpr int kPairs =
      (kWidth / 2 + kColumnThreads - 1) / kColumnThreads;
};

__host__ __device__ constexpr int PaddedDim(int dim) {
  return (dim + 7) / 8 * 8;
}
// Words from one row of a tile to the next: 16 bytes more than it has, so that
// eight lanes that read eight rows meet eight different sets of banks.
__host__ __device__ constexpr int TileStride(int dim) {
  return PaddedDim(dim) / 2 + 4;
}

// Part of a tile on its way through registers.
template <KvType type, int kWidth>
struct TileInFlight {
  static constexpr int kPasses = kTileKeys / kRowsAtOnce;
  static constexpr int kParts = kWidth / 8 / kRowThreads;
  KvPart<type> parts[kPasses][kParts];

  // Rows past `count` become zeros: there is nothing to read.
  __device__ void Fetch(const std::byte* tile, int count, int dim) {
    const int row_parts = PaddedDim(dim) / 8;
    COLDSTREAM_UNROLL
    for (int pass = 0; pass < kPasses; ++pass) {
      const int row =
          pass * kRowsAtOnce + static_cast<int>(threadIdx.x) / kRowThreads;
      COLDSTREAM_UNROLL
      for (int i = 0; i < kParts; ++i) {
        const int part =
            i * kRowThreads + static_cast<int>(threadIdx.x) % kRowThreads;
        parts[pass][i] = row < count && part < row_parts
                             ? KvPart<type>::Load(tile, row, part, dim)
                             : KvPart<type>::Zero();
      }
    }
  }
  __device__ void Store(int dim, unsigned* tile) const {
    const int row_parts = PaddedDim(dim) / 8;
    COLDSTREAM_UNROLL
    for (int pass = 0; pass < kPasses; ++pass) {
      const int row =
          pass * kRowsAtOnce + static_cast<int>(threadIdx.x) / kRowThreads;
      COLDSTREAM_UNROLL
      for (int i = 0; i < kParts; ++i) {
        const int part =
            i * kRowThreads + static_cast<int>(threadIdx.x) % kRowThreads;
        if (part < row_parts)
          reinterpret_cast<uint4*>(tile + row * TileStride(dim))[part] =
              parts[pass][i].Halves();
      }
    }
  }
};

// A block's shared memory, in this order.
struct Shared {
  unsigned* tile;  // keys, then values of the tile at hand
  float* q;        // [kRows, PaddedDim(key_dim)]
  float* scores;   // [kRows, kTileKeys], then their weights
  RowState* states;
  float* corrections;
};

__host__ __device__ constexpr int TileWords(int key_dim, int value_dim) {
  const int stride = TileStride(key_dim) > TileStride(value_dim)
                         ? TileStride(key_dim)
                         : TileStride(value_dim);
  return kTileKeys * stride;
}
template <int kRows>
size_t SharedBytes(int key_dim, int value_dim) {
  return sizeof(float) *
         static_cast<size_t>(TileWords(key_dim, value_dim) +
                             kRows * (PaddedDim(key_dim) + kTileKeys + 3));
}
template <int kRows>
__device__ Shared SharedOf(float* memory, int key_dim, int value_dim) {
  Shared shared;
  shared.tile = reinterpret_cast<unsigned*>(memory);
  shared.q = memory + TileWords(key_dim, value_dim);
  shared.scores = shared.q + kRows * PaddedDim(key_dim);
  shared.states =
      reinterpret_cast<RowState*>(shared.scores + kRows * kTileKeys);
  shared.corrections = reinterpret_cast<float*>(shared.states + kRows);
  return shared;
}

// scores[row][key] of all rows and keys; the tile holds keys.
template <int kRows, int kWidth>
__device__ void ScoreTile(const Shared& shared, int key_dim, float scale) {
  using Share = Shares<kRows, kWidth>;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int padded = PaddedDim(key_dim);
  for (int unit = warp; unit < Share::kUnits; unit += kWarps) {
    const int first_row = unit / 2 * Share::kSetRows;
    const int key = unit % 2 * 32 + static_cast<int>(threadIdx.x) % 32;
    const uint4* const row =
        reinterpret_cast<const uint4*>(shared.tile + key * TileStride(key_dim));
    float sums[Share::kSetRows] = {};
    for (int at = 0; at < padded; at += 8) {
      float values[8];
      ToFloats(row[at / 8], values);
      COLDSTREAM_UNROLL
      for (int r = 0; r < Share::kSetRows; ++r) {
        const float4* const q = reinterpret_cast<const float4*>(
            shared.q + (first_row + r) * padded + at);
        sums[r] = FourSteps(q[0], values, sums[r]);
        sums[r] = FourSteps(q[1], values + 4, sums[r]);
      }
    }
    COLDSTREAM_UNROLL
    for (int r = 0; r < Share::kSetRows; ++r)
      shared.scores[(first_row + r) * kTileKeys + key] = sums[r] * scale;
  }
}

// This thread's sums of weighted values: of columns 2 pair and 2 pair + 1.
template <int kRows, int kWidth>
struct ValueSums {
  using Share = Shares<kRows, kWidth>;
  float2 sums[Share::kWarpRows][Share::kPairs] = {};

  __device__ static int Row(int r) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    return warp / Share::kWarpsPerRow * Share::kWarpRows + r;
  }
  __device__ static int Pair(int i) {
    return i * Share::kColumnThreads +
           static_cast<int>(threadIdx.x) % Share::kColumnThreads;
  }

  // The tile holds values, of `count` keys.
  __device__ void AddTile(const Shared& shared, int count, int value_dim) {
    const int pairs = PaddedDim(value_dim) / 2;
    COLDSTREAM_UNROLL
    for (int r = 0; r < Share::kWarpRows; ++r) {
      const float correction = shared.corrections[Row(r)];
      COLDSTREAM_UNROLL
      for (int i = 0; i < Share::kPairs; ++i) {
        sums[r][i].x *= correction;
        sums[r][i].y *= correction;
      }
    }
    for (int key = 0; key < count; ++key) {
      const unsigned* const values = shared.tile + key * TileStride(value_dim);
      COLDSTREAM_UNROLL
      for (int i = 0; i < Share::kPairs; ++i) {
        if (Pair(i) >= pairs) continue;
        const unsigned word = values[Pair(i)];
        COLDSTREAM_UNROLL
        for (int r = 0; r < Share::kWarpRows; ++r) {
          const float weight = shared.scores[Row(r) * kTileKeys + key];
          sums[r][i].x = fmaf(weight, LowHalf(word), sums[r][i].x);
          sums[r][i].y = fmaf(weight, HighHalf(word), sums[r][i].y);
        }
      }
    }
  }
};

// What a block works on.
struct Split {
  DecodeItem item;
  int64_t kv_head;
  int64_t head;  // the first of its query heads
  int rows;      // how many
  int64_t position;
  int64_t first_tile;
  int64_t end_tile;
};

template <int kRows>
__device__ Split SplitOf(const AttentionCall& call) {
  Split split;
  split.item = call.work.decode[blockIdx.x];
  const int64_t group = call.layer.heads / call.layer.kv_heads;
  const int64_t row_blocks = (group + kRows - 1) / kRows;
  split.kv_head = blockIdx.y / row_blocks;
  const int64_t row = blockIdx.y % row_blocks * kRows;
  split.head = split.kv_head * group + row;
  split.rows = static_cast<int>(min(group - row, int64_t{kRows}));
  split.position = call.tokens.positions[split.item.token];
  constexpr int64_t kSplitTiles = kSplitKeys / kTileKeys;
  split.first_tile = split.item.split * kSplitTiles;
  split.end_tile =
      min(split.first_tile + kSplitTiles, split.position / kTileKeys + 1);
  return split;
}

// Queries and empty states; rows that do not exist are zeros.
template <int kRows>
__device__ void Begin(const AttentionCall& call, const Split& split,
                      const Shared& shared) {
  const int key_dim = static_cast<int>(call.layer.key_dim);
  const int padded = PaddedDim(key_dim);
  const float* const q =
      call.q + (split.item.token * call.layer.heads + split.head) * key_dim;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * padded;
       i += kThreads) {
    const int row = i / padded;
    const int at = i % padded;
    shared.q[i] =
        row < split.rows && at < key_dim ? q[row * key_dim + at] : 0.0f;
  }
  if (threadIdx.x < kRows) shared.states[threadIdx.x] = NoKeys();
}

template <int kRows, int kWidth>
__device__ void End(const AttentionCall& call, const Split& split,
                    const Shared& shared,
                    const ValueSums<kRows, kWidth>& values) {
  using Sums = ValueSums<kRows, kWidth>;
  const int value_dim = static_cast<int>(call.layer.value_dim);
  const bool whole = split.item.partial < 0;
  const int64_t stride = whole ? value_dim : value_dim + 2;
  const int64_t first =
      (whole ? split.item.token : split.item.partial) * call.layer.heads +
      split.head;
  for (int r = 0; r < Sums::Share::kWarpRows; ++r) {
    const int row = Sums::Row(r);
    if (row >= split.rows) continue;
    const RowState state = shared.states[row];
    float* const out =
        (whole ? call.out : call.partials) + (first + row) * stride;
    for (int i = 0; i < Sums::Share::kPairs; ++i) {
      const int column = Sums::Pair(i) * 2;
      const float2 sum = values.sums[r][i];
      if (column < value_dim)
        out[column] = whole ? Softmax(sum.x, state.weight) : sum.x;
      if (column + 1 < value_dim)
        out[column + 1] = whole ? Softmax(sum.y, state.weight) : sum.y;
    }
    if (!whole && Sums::Pair(0) == 0) {
      out[value_dim] = state.max;
      out[value_dim + 1] = state.weight;
    }
  }
}

// The block takes rows [row, row + kRows) of a KV head's group, and one split.
template <KvType type, int kRows, int kWidth>
__global__ void __launch_bounds__(kThreads, kWidth > 128 ? 3 : 5)
    DecodeKernel(AttentionCall call, float scale) {
  COLDSTREAM_DYNAMIC_SHARED(float, memory);
  const int key_dim = static_cast<int>(call.layer.key_dim);
  const int value_dim = static_cast<int>(call.layer.value_dim);
  const Shared shared = SharedOf<kRows>(memory, key_dim, value_dim);
  const Split split = SplitOf<kRows>(call);
  const int32_t sequence = call.tokens.sequence[split.item.token];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  TileRows rows = RowsOfTile<type>(call.layer, call.tokens, sequence,
                                   split.first_tile, split.kv_head);
  int count = KeysOfTile(split.position, split.first_tile * kTileKeys);
  TileInFlight<type, kWidth> flight;
  flight.Fetch(rows.keys, count, key_dim);
  Begin<kRows>(call, split, shared);
  ValueSums<kRows, kWidth> sums;
  for (int64_t tile = split.first_tile; tile < split.end_tile; ++tile) {
    __syncthreads();  // the tile before has been read
    flight.Store(key_dim, shared.tile);
    flight.Fetch(rows.values, count, value_dim);
    __syncthreads();
    ScoreTile<kRows, kWidth>(shared, key_dim, scale);
    __syncthreads();  // keys have been read, scores are there
    for (int row = warp; row < kRows; row += kWarps) {
      const float correction = TileWeights(
          count, shared.scores + row * kTileKeys, shared.states + row);
      if (threadIdx.x % 32 == 0) shared.corrections[row] = correction;
    }
    flight.Store(value_dim, shared.tile);
    const int values = count;
    if (tile + 1 < split.end_tile) {
      rows = RowsOfTile<type>(call.layer, call.tokens, sequence, tile + 1,
                              split.kv_head);
      count = KeysOfTile(split.position, (tile + 1) * kTileKeys);
      flight.Fetch(rows.keys, count, key_dim);
    }
    __syncthreads();
    sums.AddTile(shared, values, value_dim);
  }
  End<kRows, kWidth>(call, split, shared, sums);
}

template <KvType type, int kRows>
Status LaunchRows(const AttentionCall& call, float scale, Stream* stream) {
  const KvLayer& layer = call.layer;
  const int64_t group = layer.heads / layer.kv_heads;
  const dim3 grid(Blocks(call.work.decode_count, 1),
                  Blocks(layer.kv_heads * ((group + kRows - 1) / kRows), 1));
  const size_t bytes = SharedBytes<kRows>(static_cast<int>(layer.key_dim),
                                          static_cast<int>(layer.value_dim));
  if (layer.key_dim <= 128 && layer.value_dim <= 128)
    return Launch<DecodeKernel<type, kRows, 128>>(grid, kThreads, bytes, stream,
                                                  call, scale);
  return Launch<DecodeKernel<type, kRows, 256>>(grid, kThreads, bytes, stream,
                                                call, scale);
}

template <KvType type>
Status LaunchType(const AttentionCall& call, float scale, Stream* stream) {
  const int64_t group = call.layer.heads / call.layer.kv_heads;
  if (group == 1) return LaunchRows<type, 1>(call, scale, stream);
  if (group == 2) return LaunchRows<type, 2>(call, scale, stream);
  if (group <= 4) return LaunchRows<type, 4>(call, scale, stream);
  return LaunchRows<type, 8>(call, scale, stream);
}

}  // namespace

Status AttendDecode(const AttentionCall& call, float scale, Stream* stream) {
  if (call.work.decode_count == 0) return absl::OkStatus();
  return call.layer.type == KvType::kF16
             ? LaunchType<KvType::kF16>(call, scale, stream)
             : LaunchType<KvType::kQ8_0>(call, scale, stream);
}

}  // namespace coldstream::cuda
