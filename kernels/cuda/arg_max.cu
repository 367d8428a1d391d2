#include "kernels/cuda/arg_max.h"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/logit_key.cuh"
#include "kernels/cuda/row_reduce.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kValuesPerThread = 8;

__global__ void ResetKernel(int64_t rows, LogitKey* best, int32_t* first_bad) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  best[row] = kNoChoice;
  first_bad[row] = kNoBadLogit;
}

// A block takes a piece of a row; rows go by in steps of the grid. Keys are
// unique, so the maximum does not depend on the order of the atomics.
__global__ void ArgMaxKernel(const float* logits, int64_t stride, int64_t rows,
                             int64_t n, LogitKey* best, int32_t* first_bad) {
  const int64_t begin = int64_t{blockIdx.x} * kThreads * kValuesPerThread;
  const int64_t end = min(begin + kThreads * kValuesPerThread, n);
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    LogitKey mine = kNoChoice;
    int32_t bad = kNoBadLogit;
    for (int64_t i = begin + threadIdx.x; i < end; i += kThreads)
      mine = max(mine, KeyOf(logits[row * stride + i], i, &bad));
    for (int step = 16; step > 0; step /= 2) {
      mine = max(mine, __shfl_xor_sync(kAllLanes, mine, step));
      bad = min(bad, __shfl_xor_sync(kAllLanes, bad, step));
    }
    if (threadIdx.x % 32 == 0) {
      if (mine != kNoChoice) atomicMax(best + row, mine);
      if (bad != kNoBadLogit) atomicMin(first_bad + row, bad);
    }
  }
}

}  // namespace

Status ArgMax(const float* logits, int64_t stride, int64_t rows, int64_t n,
              LogitKey* best, int32_t* first_bad, Stream* stream) {
  if (rows == 0) return absl::OkStatus();
  RETURN_IF_ERROR(Launch<ResetKernel>(Blocks(rows, kThreads), kThreads, 0,
                                      stream, rows, best, first_bad));
  if (n == 0) return absl::OkStatus();
  return Launch<ArgMaxKernel>(
      dim3(Blocks(n, kThreads * kValuesPerThread), GridRows(rows)), kThreads, 0,
      stream, logits, stride, rows, n, best, first_bad);
}

}  // namespace coldstream::cuda
