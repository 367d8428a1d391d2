#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layer_norm.h"
#include "kernels/cuda/row_reduce.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 512;

// False, with nothing written, if a sum is not finite; `last` writes anyway.
// x and out may be one: a thread writes what it alone has read.
template <typename Real>
__device__ bool NormRow(const float* x, const float* weight, const float* bias,
                        float eps, int64_t n, bool last, float* out) {
  Real sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += x[i];
  const Real mean = BlockSum<kThreads>(sum) / static_cast<Real>(n);
  Real distances = 0;
  Real squares = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    const Real distance = x[i] - mean;
    distances += distance;
    squares = fma(distance, distance, squares);
  }
  const Real error = BlockSum<kThreads>(distances) / static_cast<Real>(n);
  squares = BlockSum<kThreads>(squares);
  if (!isfinite(squares) && !last) return false;
  const Real variance = squares / static_cast<Real>(n) - error * error;
  const Real inverse =
      static_cast<Real>(1) /
      static_cast<Real>(sqrt(variance + static_cast<Real>(eps)));
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    const Real shift = bias == nullptr ? 0.0f : bias[i];
    const Real distance = x[i] - mean - error;
    out[i] = static_cast<float>(distance * inverse * weight[i] + shift);
  }
  return true;
}

// A row a block.
__global__ void __launch_bounds__(kThreads)
    LayerNormKernel(const float* x, const int32_t* gather, const float* weight,
                    const float* bias, float eps, int64_t n, float* out) {
  const int64_t row = blockIdx.x;
  const float* const from = x + (gather == nullptr ? row : gather[row]) * n;
  if (!NormRow<float>(from, weight, bias, eps, n, false, out + row * n))
    NormRow<double>(from, weight, bias, eps, n, true, out + row * n);
}

}  // namespace

Status LayerNorm(const float* x, const int32_t* gather, const float* weight,
                 const float* bias, float eps, int64_t rows, int64_t n,
                 float* out, Stream* stream) {
  if (rows == 0 || n == 0) return absl::OkStatus();
  return Launch<LayerNormKernel>(Blocks(rows, 1), kThreads, 0, stream, x,
                                 gather, weight, bias, eps, n, out);
}

}  // namespace coldstream::cuda
