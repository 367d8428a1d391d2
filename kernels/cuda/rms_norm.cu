#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rms_norm.h"
#include "kernels/cuda/row_reduce.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 512;

// False, with nothing written, if the sum is not finite; `last` writes anyway.
// x and out may be one: a thread writes what it alone has read.
template <typename Real>
__device__ bool NormRow(const float* x, const float* weight, float eps,
                        int64_t n, bool last, float* out) {
  Real squares = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    const Real v = x[i];
    squares = fma(v, v, squares);
  }
  squares = BlockSum<kThreads>(squares);
  if (!isfinite(squares) && !last) return false;
  const Real mean = squares / static_cast<Real>(n);
  const Real inverse = static_cast<Real>(1) /
                       static_cast<Real>(sqrt(mean + static_cast<Real>(eps)));
  for (int64_t i = threadIdx.x; i < n; i += kThreads)
    out[i] = static_cast<float>(x[i] * inverse * weight[i]);
  return true;
}

// A row a block.
__global__ void __launch_bounds__(kThreads)
    RmsNormKernel(const float* x, const int32_t* gather, const float* weight,
                  float eps, int64_t n, float* out) {
  const int64_t row = blockIdx.x;
  const float* const from = x + (gather == nullptr ? row : gather[row]) * n;
  if (!NormRow<float>(from, weight, eps, n, false, out + row * n))
    NormRow<double>(from, weight, eps, n, true, out + row * n);
}

}  // namespace

Status RmsNorm(const float* x, const int32_t* gather, const float* weight,
               float eps, int64_t rows, int64_t n, float* out, Stream* stream) {
  if (rows == 0 || n == 0) return absl::OkStatus();
  return Launch<RmsNormKernel>(Blocks(rows, 1), kThreads, 0, stream, x, gather,
                               weight, eps, n, out);
}

}  // namespace coldstream::cuda
