// F32, F16 and BF16 weights as floats; exact.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cuda/cuda_language.cuh"

namespace coldstream::cuda {

__host__ __device__ constexpr int FloatBytes(DType type) {
  return type == DType::kF32 ? 4 : 2;
}

template <DType type>
__device__ inline float WidenBits(uint32_t bits) {
  if constexpr (type == DType::kF32) return __uint_as_float(bits);
  if constexpr (type == DType::kBF16) return __uint_as_float(bits << 16);
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// One value at any address.
template <DType type>
__device__ inline float LoadFloat(const uint8_t* from) {
  uint32_t bits = 0;
  COLDSTREAM_UNROLL
  for (int i = 0; i < FloatBytes(type); ++i)
    bits |= static_cast<uint32_t>(from[i]) << (8 * i);
  return WidenBits<type>(bits);
}

// All values of n words.
template <DType type, int n, int count>
__device__ inline void WidenWords(const uint32_t (&words)[n],
                                  float (&values)[count]) {
  static_assert(count * FloatBytes(type) == 4 * n);
  COLDSTREAM_UNROLL
  for (int i = 0; i < count; ++i) {
    if constexpr (type == DType::kF32) {
      values[i] = WidenBits<type>(words[i]);
    } else {
      values[i] = WidenBits<type>(words[i / 2] >> (16 * (i % 2)) & 0xffffu);
    }
  }
}

}  // namespace coldstream::cuda
