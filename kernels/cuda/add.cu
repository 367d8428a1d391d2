#include "kernels/cuda/add.h"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void AddKernel(const float* x, int64_t n, float* out) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) out[i] += x[i];
}

// A block takes kThreads columns; rows go by in steps of the grid's height.
__global__ void AddBiasKernel(const float* bias, int64_t rows, int64_t n,
                              float* x) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= n) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y)
    x[row * n + i] += bias[i];
}

}  // namespace

Status Add(const float* x, int64_t n, float* out, Stream* stream) {
  if (n == 0) return absl::OkStatus();
  return Launch<AddKernel>(Blocks(n, kThreads), kThreads, 0, stream, x, n, out);
}

Status AddBias(const float* bias, int64_t rows, int64_t n, float* x,
               Stream* stream) {
  if (n == 0 || rows == 0) return absl::OkStatus();
  return Launch<AddBiasKernel>(dim3(Blocks(n, kThreads), GridRows(rows)),
                               kThreads, 0, stream, bias, rows, n, x);
}

}  // namespace coldstream::cuda
