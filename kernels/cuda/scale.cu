#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/scale.h"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void ScaleKernel(float factor, int64_t n, float* x) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) x[i] *= factor;
}

}  // namespace

Status Scale(float factor, int64_t n, float* x, Stream* stream) {
  if (n == 0) return absl::OkStatus();
  return Launch<ScaleKernel>(Blocks(n, kThreads), kThreads, 0, stream, factor,
                             n, x);
}

}  // namespace coldstream::cuda
