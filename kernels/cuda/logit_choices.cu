#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/logit_choices.h"
#include "kernels/cuda/logit_key.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void LogitChoicesKernel(const LogitKey* keys, int64_t n,
                                   LogitChoice* choices) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) choices[i] = ChoiceOf(keys[i]);
}

}  // namespace

Status LogitChoices(const LogitKey* keys, int64_t n, LogitChoice* choices,
                    Stream* stream) {
  if (n == 0) return absl::OkStatus();
  return Launch<LogitChoicesKernel>(Blocks(n, kThreads), kThreads, 0, stream,
                                    keys, n, choices);
}

}  // namespace coldstream::cuda
