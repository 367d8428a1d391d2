#include "kernels/cuda/check_finite.h"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/row_reduce.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kValuesPerThread = 8;

__global__ void ResetTagKernel(int32_t* lowest) { *lowest = kNoTag; }

// A thread takes kValuesPerThread values, those of a block lie together.
__global__ void CheckFiniteKernel(const float* x, int64_t n, int32_t tag,
                                  int32_t* lowest) {
  const int64_t begin = int64_t{blockIdx.x} * kThreads * kValuesPerThread;
  const int64_t end = min(begin + kThreads * kValuesPerThread, n);
  bool finite = true;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads)
    finite = finite && isfinite(x[i]);
  // One lane speaks for its warp.
  if (__any_sync(kAllLanes, !finite) && threadIdx.x % 32 == 0)
    atomicMin(lowest, tag);
}

}  // namespace

Status ResetTag(int32_t* lowest, Stream* stream) {
  return Launch<ResetTagKernel>(1, 1, 0, stream, lowest);
}

Status CheckFinite(const float* x, int64_t n, int32_t tag, int32_t* lowest,
                   Stream* stream) {
  if (n == 0) return absl::OkStatus();
  return Launch<CheckFiniteKernel>(Blocks(n, kThreads * kValuesPerThread),
                                   kThreads, 0, stream, x, n, tag, lowest);
}

}  // namespace coldstream::cuda
