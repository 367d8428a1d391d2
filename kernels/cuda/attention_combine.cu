// Adds up the splits that the decode kernel left, in order.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 128;

// A block takes one head of one token, a thread every kThreads-th value.
__global__ void CombineKernel(AttentionCall call) {
  const CombineItem item = call.work.combine[blockIdx.x];
  const int64_t head = blockIdx.y;
  const int64_t value_dim = call.layer.value_dim;
  const int64_t stride = call.layer.heads * (value_dim + 2);
  const float* const first =
      call.partials + item.partial * stride + head * (value_dim + 2);
  for (int64_t i = threadIdx.x; i < value_dim; i += kThreads) {
    float sum = first[i];
    RowState state = {first[value_dim], first[value_dim + 1]};
    for (int32_t s = 1; s < item.splits; ++s) {
      const float* const part = first + s * stride;
      const RowState split = {part[value_dim], part[value_dim + 1]};
      const SplitMerge merge = MergeOf(state, split);
      sum = MergeSums(merge, sum, part[i]);
      state = MergeStates(merge, state, split);
    }
    call.out[(item.token * call.layer.heads + head) * value_dim + i] =
        Softmax(sum, state.weight);
  }
}

}  // namespace

Status CombineSplits(const AttentionCall& call, Stream* stream) {
  if (call.work.combine_count == 0) return absl::OkStatus();
  return Launch<CombineKernel>(
      dim3(Blocks(call.work.combine_count, 1), Blocks(call.layer.heads, 1)),
      kThreads, 0, stream, call);
}

}  // namespace coldstream::cuda
