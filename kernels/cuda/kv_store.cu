#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/kv_store.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/quantize_block.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kGroup = static_cast<int>(kKvScaleValues);
static_assert(kGroup == 32);  // a warp has one

// Where the keys, or values, of one token go.
struct Destination {
  std::byte* tiles;  // [heads] of the block
  int64_t dim;
  int64_t slot;
};

__device__ void StoreHalf(float value, int64_t head, int64_t at,
                          const Destination& to) {
  std::byte* const tile = to.tiles + head * KvTileBytes(KvType::kF16, to.dim);
  reinterpret_cast<__half*>(tile)[to.slot * to.dim + at] =
      __float2half_rn(value);
}

// All lanes of a warp call it with neighbours of one group, 0 past the row.
__device__ void StoreQuantized(float value, int64_t head, int64_t at,
                               const Destination& to) {
  std::byte* const tile = to.tiles + head * KvTileBytes(KvType::kQ8_0, to.dim);
  const Scaling scaling = ScalingOf(LargestOfWarp(MagnitudeBits(value)));
  if (at < to.dim)
    reinterpret_cast<int8_t*>(tile)[to.slot * to.dim + at] =
        static_cast<int8_t>(Quantized(value, scaling));
  if (at % kGroup == 0)
    reinterpret_cast<__half*>(
        tile +
        KvScalesOffset(to.dim))[to.slot * KvScales(to.dim) + at / kGroup] =
        __float2half_rn(scaling.scale);
}

// x: [heads, dim] of a token; a row is as wide as its groups are.
template <KvType type>
__device__ void StoreOne(const float* x, int64_t item, const Destination& to) {
  const int64_t width =
      type == KvType::kF16 ? to.dim : KvScales(to.dim) * kGroup;
  const int64_t head = item / width;
  const int64_t at = item % width;
  const float value = at < to.dim ? x[head * to.dim + at] : 0.0f;
  if constexpr (type == KvType::kF16) {
    StoreHalf(value, head, at, to);
  } else {
    StoreQuantized(value, head, at, to);
  }
}

template <KvType type>
__host__ __device__ int64_t Width(int64_t heads, int64_t dim) {
  return heads * (type == KvType::kF16 ? dim : KvScales(dim) * kGroup);
}

// A thread takes one value of a token's key, or of its value; tokens go by in
// steps of the grid.
template <KvType type>
__global__ void StoreKvKernel(const float* k, const float* v,
                              DeviceTokens tokens, KvLayer layer) {
  const int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t key_width = Width<type>(layer.kv_heads, layer.key_dim);
  const int64_t value_width = Width<type>(layer.kv_heads, layer.value_dim);
  if (item >= key_width + value_width) return;
  for (int64_t t = blockIdx.y; t < tokens.count; t += gridDim.y) {
    const int64_t position = tokens.positions[t];
    const int32_t first_block = tokens.block_begin[tokens.sequence[t]];
    const int64_t block =
        tokens.blocks[first_block + position / kKvBlockTokens];
    std::byte* const base =
        layer.base + static_cast<uint64_t>(block) * layer.block_bytes;
    const int64_t slot = position % kKvBlockTokens;
    if (item < key_width) {
      StoreOne<type>(k + t * layer.kv_heads * layer.key_dim, item,
                     {base, layer.key_dim, slot});
    } else {
      StoreOne<type>(v + t * layer.kv_heads * layer.value_dim, item - key_width,
                     {base + layer.values_offset, layer.value_dim, slot});
    }
  }
}

template <KvType type>
Status LaunchType(const float* k, const float* v, const DeviceTokens& tokens,
                  const KvLayer& layer, Stream* stream) {
  const int64_t width = Width<type>(layer.kv_heads, layer.key_dim) +
                        Width<type>(layer.kv_heads, layer.value_dim);
  return Launch<StoreKvKernel<type>>(
      dim3(Blocks(width, kThreads), GridRows(tokens.count)), kThreads, 0,
      stream, k, v, tokens, layer);
}

}  // namespace

Status StoreKv(const float* k, const float* v, const DeviceTokens& tokens,
               const KvLayer& layer, Stream* stream) {
  if (tokens.count == 0) return absl::OkStatus();
  return layer.type == KvType::kF16
             ? LaunchType<KvType::kF16>(k, v, tokens, layer, stream)
             : LaunchType<KvType::kQ8_0>(k, v, tokens, layer, stream);
}

}  // namespace coldstream::cuda
