// The rule by which a block of activations, or of keys and values, becomes
// 8-bit numbers: that of kernels/activations.h.
#pragma once

#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/row_reduce.cuh"

namespace coldstream::cuda {

// Scale of a block and the factor that takes its values to [-127, 127].
struct Scaling {
  float scale;
  float inverse;
};

// Magnitudes are compared as bits: a NaN is larger than an infinity. Not
// finite: scale NaN and all numbers 0; too small for a finite factor: all 0.
__device__ inline Scaling ScalingOf(uint32_t largest_bits) {
  if (largest_bits >= 0x7f800000u) return {__uint_as_float(0x7fc00000u), 0};
  const float largest = __uint_as_float(largest_bits);
  const float inverse = 127.0f / largest;
  if (!isfinite(inverse)) return {0, 0};
  return {largest / 127.0f, inverse};
}

__device__ inline uint32_t MagnitudeBits(float value) {
  return __float_as_uint(value) & 0x7fffffffu;
}

__device__ inline uint32_t LargestOfWarp(uint32_t bits) {
  COLDSTREAM_UNROLL
  for (int distance = 16; distance > 0; distance /= 2)
    bits = max(bits, __shfl_xor_sync(kAllLanes, bits, distance));
  return bits;
}

__device__ inline int Quantized(float value, const Scaling& scaling) {
  return scaling.inverse == 0 ? 0 : __float2int_rn(value * scaling.inverse);
}

}  // namespace coldstream::cuda
