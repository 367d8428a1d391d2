// 16-bit floats as uint16_t: the toolchain (clang 14) has no _Float16 in C++.
//
// F16 is IEEE 754 binary16, BF16 the upper half of binary32. Narrowing rounds
// to nearest, ties to even; NaN stays NaN (and becomes quiet, except
// BF16ToF32), overflow becomes infinity. These are the scalar specification.
// The F16C instructions agree with it bit for bit; those of AVX512-BF16 do not:
// they flush subnormal numbers to zero.
#ifndef COLDSTREAM_BASE_HALF_H_
#define COLDSTREAM_BASE_HALF_H_

#include <cstdint>

namespace coldstream {

float F16ToF32(uint16_t h);
uint16_t F32ToF16(float f);
float BF16ToF32(uint16_t b);
uint16_t F32ToBF16(float f);

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_HALF_H_
