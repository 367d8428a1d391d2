// Attention over the paged f16 cache on the GPU.
//
// As AttentionArgs (kernels/ops.h): softmax(scale * q . K) V, grouped-query,
// causal, scale 1 / sqrt(key_dim). A token's result depends on nothing but its
// query and its keys and values: not on its batch mates, on the run it came in,
// or on which kernel took it. (Finite values are meant: in a prompt, a value of
// a later token that is not finite spoils earlier ones of its tile as well.)
// The order of its sums, in all kernels:
//
//   score  one chain over the key's values
//   tile   64 keys; their weights are summed by a tree, their values by one
//          chain a value, onto the tile before scaled by the new maximum
//   split  256 keys, a tile after the other; splits are added up in order
//
// Source: Milakov & Gimelshein 2018 (arXiv 1805.02867); splits: Dao et al.,
// "Flash-Decoding for long-context inference" (2023).
#ifndef COLDSTREAM_KERNELS_CUDA_ATTENTION_H_
#define COLDSTREAM_KERNELS_CUDA_ATTENTION_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"
#include "kernels/cuda/attention_work.h"
#include "kernels/cuda/device_tokens.h"
#include "kernels/pass_ops.h"

namespace coldstream::cuda {

// Widest head, of keys and of values: what a tile in shared memory allows.
inline constexpr int64_t kMostHeadDim = 256;

// The lists of an AttentionWork on the device.
struct DeviceAttentionWork {
  const DecodeItem* decode = nullptr;
  int64_t decode_count = 0;
  const CombineItem* combine = nullptr;
  int64_t combine_count = 0;
  const PrefillTile* tiles = nullptr;
  int64_t tile_count = 0;
};

// Floats of one partial result: value_dim sums, the maximum, the weight.
inline int64_t PartialFloats(int64_t value_dim) { return value_dim + 2; }

struct AttentionCall {
  const float* q = nullptr;   // [tokens, heads, key_dim]
  float* out = nullptr;       // [tokens, heads, value_dim]
  float* partials = nullptr;  // [MostPartials, heads, PartialFloats]
  KvLayer layer;
  DeviceTokens tokens;
  DeviceAttentionWork work;
};

// All tokens of the pass. The addresses of blocks, keys and values are
// multiples of 16. Errors: Unimplemented (wider heads than kMostHeadDim).
Status Attend(const AttentionCall& call, Stream* stream);

// Its parts: the splits of work.decode, those that need adding up, and the
// tiles. Each takes what Attend has checked.
Status AttendDecode(const AttentionCall& call, float scale, Stream* stream);
Status CombineSplits(const AttentionCall& call, Stream* stream);
Status AttendPrefill(const AttentionCall& call, float scale, Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_ATTENTION_H_
