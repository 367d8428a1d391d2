// __half and __nv_bfloat16 with the conversions of cuda_fp16.h and cuda_bf16.h
// that kernels use; all round to nearest even.
#ifndef COLDSTREAM_TESTS_SIMT_HALF_TYPES_H_
#define COLDSTREAM_TESTS_SIMT_HALF_TYPES_H_

#include "base/half.h"

struct __half {
  unsigned short bits;
};
struct __nv_bfloat16 {
  unsigned short bits;
};

inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline float __half2float(__half h) { return coldstream::F16ToF32(h.bits); }
inline __half __float2half(float f) { return {coldstream::F32ToF16(f)}; }
inline __half __float2half_rn(float f) { return {coldstream::F32ToF16(f)}; }

inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return {bits};
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) { return b.bits; }
inline float __bfloat162float(__nv_bfloat16 b) {
  return coldstream::BF16ToF32(b.bits);
}
inline __nv_bfloat16 __float2bfloat16(float f) {
  return {coldstream::F32ToBF16(f)};
}
inline __nv_bfloat16 __float2bfloat16_rn(float f) {
  return {coldstream::F32ToBF16(f)};
}

#endif  // COLDSTREAM_TESTS_SIMT_HALF_TYPES_H_
