// What the attention kernels share, so that they round alike: the softmax of a
// tile, the adding up of splits, and how the cache is read.
#pragma once

#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/device_tokens.h"
#include "kernels/cuda/kv_part.cuh"
#include "kernels/cuda/row_reduce.cuh"
#include "kernels/pass_ops.h"

namespace coldstream::cuda {

inline constexpr int kTileKeys = static_cast<int>(kKvBlockTokens);

// Of one query, after any number of keys: sums belong to weights relative to
// `max`; the softmax is sums / weight.
struct RowState {
  float max;
  float weight;
};

__device__ inline RowState NoKeys() { return {-INFINITY, 0.0f}; }

// exp(from - to), 1 where both are minus infinity.
__device__ inline float Rescale(float from, float to) {
  return from == to ? 1.0f : expf(from - to);
}

// One warp: the scores of a tile's first `count` keys become weights, all other
// of its kTileKeys 0. Returns what the sums so far are multiplied with.
__device__ inline float TileWeights(int count, float* scores, RowState* state) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int other = lane + 32;
  const RowState before = *state;
  const float a = lane < count ? scores[lane] : -INFINITY;
  const float b = other < count ? scores[other] : -INFINITY;
  const float max = fmaxf(before.max, WarpMax(fmaxf(a, b)));
  const float weight_a = lane < count ? expf(a - max) : 0.0f;
  const float weight_b = other < count ? expf(b - max) : 0.0f;
  const float sum = WarpSum(weight_a + weight_b);
  scores[lane] = weight_a;
  scores[other] = weight_b;
  const float correction = Rescale(before.max, max);
  __syncwarp();  // all lanes have read the state
  if (lane == 0) *state = {max, fmaf(before.weight, correction, sum)};
  return correction;
}

// How a split is added to those before it.
struct SplitMerge {
  float max;
  float before;  // factor of the sums before
  float split;   // factor of the split's
};

__device__ inline SplitMerge MergeOf(const RowState& before,
                                     const RowState& split) {
  const float max = fmaxf(before.max, split.max);
  return {max, Rescale(before.max, max), Rescale(split.max, max)};
}
__device__ inline float MergeSums(const SplitMerge& merge, float before,
                                  float split) {
  return fmaf(split, merge.split, before * merge.before);
}
__device__ inline RowState MergeStates(const SplitMerge& merge,
                                       const RowState& before,
                                       const RowState& split) {
  return {merge.max, MergeSums(merge, before.weight, split.weight)};
}

// One value of the result. + 0: a sum that vanished has no sign.
__device__ inline float Softmax(float sum, float weight) {
  return sum / weight + 0.0f;
}

// Keys of the tile that begins at `key`, of a query at `position`.
__device__ inline int KeysOfTile(int64_t position, int64_t key) {
  return static_cast<int>(
      min(position - key + 1, static_cast<int64_t>(kTileKeys)));
}

// One head's keys and values of one tile.
struct TileRows {
  const std::byte* keys;
  const std::byte* values;
};
template <KvType type>
__device__ TileRows RowsOfTile(const KvLayer& layer, const DeviceTokens& tokens,
                               int32_t sequence, int64_t tile,
                               int64_t kv_head) {
  const int64_t block = tokens.blocks[tokens.block_begin[sequence] + tile];
  const std::byte* const base =
      layer.base + static_cast<uint64_t>(block) * layer.block_bytes;
  return {base + kv_head * KvTileBytes(type, layer.key_dim),
          base + layer.values_offset +
              kv_head * KvTileBytes(type, layer.value_dim)};
}

__device__ inline float LowHalf(unsigned word) {
  return __half2float(
      __ushort_as_half(static_cast<unsigned short>(word & 0xffff)));
}
__device__ inline float HighHalf(unsigned word) {
  return __half2float(
      __ushort_as_half(static_cast<unsigned short>(word >> 16)));
}
__device__ inline void ToFloats(const uint4& halves, float* out) {
  out[0] = LowHalf(halves.x);
  out[1] = HighHalf(halves.x);
  out[2] = LowHalf(halves.y);
  out[3] = HighHalf(halves.y);
  out[4] = LowHalf(halves.z);
  out[5] = HighHalf(halves.z);
  out[6] = LowHalf(halves.w);
  out[7] = HighHalf(halves.w);
}

// Four more steps of one dot product's chain.
__device__ inline float FourSteps(const float4& a, const float* b, float sum) {
  sum = fmaf(a.x, b[0], sum);
  sum = fmaf(a.y, b[1], sum);
  sum = fmaf(a.z, b[2], sum);
  return fmaf(a.w, b[3], sum);
}

}  // namespace coldstream::cuda
