// Sums over the threads of a warp and of a block, by trees of fixed shape: the
// same bits in every run, to every thread.
//
//   const float sum = BlockSum<kThreads>(mine);   // all threads call it
//
// A step of the tree adds two values in either order, which rounds alike.
#pragma once

#include "kernels/cuda/cuda_language.cuh"

namespace coldstream::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

template <typename Real>
__device__ Real WarpSum(Real value) {
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(kAllLanes, value, step);
  return value;
}

__device__ inline float WarpMax(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, step));
  return value;
}

// Of a block of kThreads, a multiple of 32 up to 1024.
template <int kThreads, typename Real>
__device__ Real BlockSum(Real value) {
  constexpr unsigned kWarps = kThreads / 32;
  COLDSTREAM_SHARED(Real, parts, kWarps);
  value = WarpSum(value);
  __syncthreads();  // an earlier call's parts have been read
  const unsigned lane = threadIdx.x % 32;
  if (lane == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  return WarpSum(lane < kWarps ? parts[lane] : Real{0});
}

}  // namespace coldstream::cuda
