// 16-bit floats as uint16_t: the toolchain (clang 14) has no _Float16 in C++.
//
// F16 is IEEE 754 binary16, BF16 the upper half of binary32. Narrowing rounds
// to nearest, ties to even; NaN stays NaN, overflow becomes infinity. These are
// the scalar specification; ISA folders use their instructions, which agree bit
// for bit.
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
