// Loads of weight bytes as little-endian 32-bit words.
//
// Blocks of most types are not a multiple of four bytes long (Q8_0: 34), so a
// block may begin at any even, MXFP4's at any, address, and a card faults on a
// load that is not aligned to its size. Two ways to load, one per kernel:
//
//   AlignedWords<step>  every block begins at a multiple of step (4, 8 or 16)
//                       bytes: loads of up to step bytes
//   AnyWords            any address: the aligned words around the bytes,
//   shifted
//                       together. n + 1 loads for n words, where byte loads
//                       would be 4 n and 16-bit loads 2 n
//
// AnyWords reads up to three bytes before the first and after the last byte
// asked for, always within an aligned word that holds one of them. Memory of a
// card comes in larger pieces than words, so such a word is always there;
// whoever allocates weights elsewhere rounds both ends to four bytes.
#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_language.cuh"

namespace coldstream::cuda {

template <int step>
struct AlignedWords {
  static_assert(step == 4 || step == 8 || step == 16);

  // `from` is a multiple of min(step, 4 n) bytes.
  template <int n>
  static __device__ void Load(const uint8_t* from, uint32_t (&words)[n]) {
    if constexpr (step >= 16 && n % 4 == 0) {
      const uint4* vectors = reinterpret_cast<const uint4*>(from);
      COLDSTREAM_UNROLL
      for (int i = 0; i < n / 4; ++i) {
        const uint4 v = vectors[i];
        words[4 * i] = v.x;
        words[4 * i + 1] = v.y;
        words[4 * i + 2] = v.z;
        words[4 * i + 3] = v.w;
      }
    } else if constexpr (step >= 8 && n % 2 == 0) {
      const uint2* vectors = reinterpret_cast<const uint2*>(from);
      COLDSTREAM_UNROLL
      for (int i = 0; i < n / 2; ++i) {
        const uint2 v = vectors[i];
        words[2 * i] = v.x;
        words[2 * i + 1] = v.y;
      }
    } else {
      COLDSTREAM_UNROLL
      for (int i = 0; i < n; ++i)
        words[i] = reinterpret_cast<const uint32_t*>(from)[i];
    }
  }
};

struct AnyWords {
  template <int n>
  static __device__ void Load(const uint8_t* from, uint32_t (&words)[n]) {
    const unsigned past =
        static_cast<unsigned>(reinterpret_cast<uintptr_t>(from) & 3);
    const uint32_t* aligned = reinterpret_cast<const uint32_t*>(from - past);
    uint32_t low = aligned[0];
    COLDSTREAM_UNROLL
    for (int i = 0; i < n - 1; ++i) {
      const uint32_t high = aligned[i + 1];
      words[i] = __funnelshift_r(low, high, 8 * past);
      low = high;
    }
    const uint32_t high = past == 0 ? 0 : aligned[n];
    words[n - 1] = __funnelshift_r(low, high, 8 * past);
  }
};

// An F16 number at any address.
__device__ inline float LoadHalf(const uint8_t* from) {
  const unsigned bits = from[0] | static_cast<unsigned>(from[1]) << 8;
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// The low and the high half of a word as F16 numbers.
__device__ inline float LowHalf(uint32_t word) {
  return __half2float(
      __ushort_as_half(static_cast<unsigned short>(word & 0xffffu)));
}
__device__ inline float HighHalf(uint32_t word) {
  return __half2float(
      __ushort_as_half(static_cast<unsigned short>(word >> 16)));
}

// The widest step at which blocks of `bytes` bytes begin, if the first does.
constexpr int NaturalStep(int bytes) {
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;
}

}  // namespace coldstream::cuda
