#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/kv_store.h"
#include "kernels/cuda/launch.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 256;

__device__ void StoreOne(const float* from, int64_t dim, int64_t item,
                         int64_t slot, std::byte* block) {
  const int64_t head = item / dim;
  const int64_t to = (head * kKvBlockTokens + slot) * dim + item % dim;
  reinterpret_cast<__half*>(block)[to] = __float2half_rn(from[item]);
}

// A thread takes one value of a token's key, or of its value; tokens go by in
// steps of the grid.
__global__ void StoreKvKernel(const float* k, const float* v,
                              DeviceTokens tokens, KvLayer layer) {
  const int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t key_width = layer.kv_heads * layer.key_dim;
  const int64_t value_width = layer.kv_heads * layer.value_dim;
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
      StoreOne(k + t * key_width, layer.key_dim, item, slot, base);
    } else {
      StoreOne(v + t * value_width, layer.value_dim, item - key_width, slot,
               base + layer.values_offset);
    }
  }
}

}  // namespace

Status StoreKv(const float* k, const float* v, const DeviceTokens& tokens,
               const KvLayer& layer, Stream* stream) {
  if (tokens.count == 0) return absl::OkStatus();
  const int64_t width = layer.kv_heads * (layer.key_dim + layer.value_dim);
  return Launch<StoreKvKernel>(
      dim3(Blocks(width, kThreads), GridRows(tokens.count)), kThreads, 0,
      stream, k, v, tokens, layer);
}

}  // namespace coldstream::cuda
