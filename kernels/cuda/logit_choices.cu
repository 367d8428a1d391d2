#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/logit_choices.h"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 256;
constexpr uint32_t kMinusInfinityBits = 0xff800000u;

__global__ void LogitChoicesKernel(const LogitKey* keys, int64_t n,
                                   LogitChoice* choices) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= n) return;
  const LogitKey key = keys[i];
  const uint32_t ordered = static_cast<uint32_t>(key >> 32);
  uint32_t bits = ordered >> 31 != 0 ? ordered ^ 0x80000000u : ~ordered;
  if (key == kNoChoice) bits = kMinusInfinityBits;
  // kNoChoice has all bits of the id: -1.
  const int32_t id = static_cast<int32_t>(~static_cast<uint32_t>(key));
  choices[i] = LogitChoice{__uint_as_float(bits), id};
}

}  // namespace

Status LogitChoices(const LogitKey* keys, int64_t n, LogitChoice* choices,
                    Stream* stream) {
  if (n == 0) return absl::OkStatus();
  return Launch<LogitChoicesKernel>(Blocks(n, kThreads), kThreads, 0, stream,
                                    keys, n, choices);
}

}  // namespace coldstream::cuda
