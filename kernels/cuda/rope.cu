#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rope.h"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 256;

struct RopeShape {
  int64_t tokens;
  int64_t heads;
  int64_t head_dim;
  int64_t pairs;  // rotated, of a head
  bool adjacent;
};

// A thread takes one pair of one head; tokens go by in steps of the grid.
__global__ void RopeKernel(float* x, const float* cos_sin, RopeShape shape) {
  const int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (item >= shape.heads * shape.pairs) return;
  const int64_t head = item / shape.pairs;
  const int64_t pair = item % shape.pairs;
  const int64_t first =
      head * shape.head_dim + (shape.adjacent ? 2 * pair : pair);
  const int64_t second = first + (shape.adjacent ? 1 : shape.pairs);
  for (int64_t t = blockIdx.y; t < shape.tokens; t += gridDim.y) {
    float* const token = x + t * shape.heads * shape.head_dim;
    const float* const turn = cos_sin + (t * shape.pairs + pair) * 2;
    const float a = token[first];
    const float b = token[second];
    token[first] = fmaf(a, turn[0], -(b * turn[1]));
    token[second] = fmaf(a, turn[1], b * turn[0]);
  }
}

}  // namespace

Status Rope(float* x, const float* cos_sin, int64_t tokens, int64_t heads,
            int64_t head_dim, int64_t rot_dim, RopePairing pairing,
            Stream* stream) {
  const RopeShape shape = {tokens, heads, head_dim, rot_dim / 2,
                           pairing == RopePairing::kAdjacent};
  if (tokens == 0 || heads * shape.pairs == 0) return absl::OkStatus();
  return Launch<RopeKernel>(
      dim3(Blocks(heads * shape.pairs, kThreads), GridRows(tokens)), kThreads,
      0, stream, x, cos_sin, shape);
}

}  // namespace coldstream::cuda
