#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/swiglu.h"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 256;

// sigmoid(g) as exp(-|g|) over or under 1, so that nothing overflows.
__global__ void SwiGluKernel(const float* gate, const float* up, int64_t n,
                             float* out) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= n) return;
  const float g = gate[i];
  const float e = expf(-fabsf(g));
  const float sigmoid = (g < 0 ? e : 1.0f) / (1.0f + e);
  out[i] = g * sigmoid * up[i];
}

}  // namespace

Status SwiGlu(const float* gate, const float* up, int64_t n, float* out,
              Stream* stream) {
  if (n == 0) return absl::OkStatus();
  return Launch<SwiGluKernel>(Blocks(n, kThreads), kThreads, 0, stream, gate,
                              up, n, out);
}

}  // namespace coldstream::cuda
