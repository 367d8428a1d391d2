// CUDA's arithmetic functions and intrinsics, with the rounding that the CUDA
// Math API promises for them without -use_fast_math. Where a device function is
// only accurate to some units in the last place (expf, rsqrtf, __expf), this is
// one of the results it may give.
#ifndef COLDSTREAM_TESTS_SIMT_INTRINSICS_H_
#define COLDSTREAM_TESTS_SIMT_INTRINSICS_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

// Global functions of CUDA that C++ keeps in std.
using std::fma;
using std::isfinite;
using std::isinf;
using std::isnan;
using std::max;
using std::min;
using std::sqrt;

inline float rsqrtf(float x) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(x)));
}
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __frcp_rn(float a) { return 1 / a; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }

inline float __int2float_rn(int i) { return static_cast<float>(i); }
inline int __float2int_rn(float f) {
  return static_cast<int>(std::nearbyint(f));
}
inline int __float_as_int(float f) { return std::bit_cast<int>(f); }
inline unsigned __float_as_uint(float f) { return std::bit_cast<unsigned>(f); }
inline float __int_as_float(int i) { return std::bit_cast<float>(i); }
inline float __uint_as_float(unsigned u) { return std::bit_cast<float>(u); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
// One more than the lowest set bit's number; 0 for 0.
inline int __ffs(int x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1;
}

// Byte i of the result is byte (selector >> 4 i) & 7 of y:x. The sign
// replication of selector bit 3 is not used.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = uint64_t{y} << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned source = selector >> (4 * i) & 7;
    result |= static_cast<unsigned>(bytes >> (8 * source) & 0xff) << (8 * i);
  }
  return result;
}

// The low 32 bits of hi:lo shifted right by shift & 31.
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  const uint64_t both = uint64_t{hi} << 32 | lo;
  return static_cast<unsigned>(both >> (shift & 31));
}

// c plus four products of signed bytes; wraps, as the instruction does.
inline int __dp4a(int a, int b, int c) {
  unsigned sum = static_cast<unsigned>(c);
  for (int i = 0; i < 4; ++i) {
    const int x = static_cast<int8_t>(a >> (8 * i) & 0xff);
    const int y = static_cast<int8_t>(b >> (8 * i) & 0xff);
    sum += static_cast<unsigned>(x * y);
  }
  return static_cast<int>(sum);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i)
    c += (a >> (8 * i) & 0xff) * (b >> (8 * i) & 0xff);
  return c;
}

// a - b for each of four bytes, wrapping.
inline unsigned __vsub4(unsigned a, unsigned b) {
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned d = (a >> (8 * i) & 0xff) - (b >> (8 * i) & 0xff);
    result |= (d & 0xff) << (8 * i);
  }
  return result;
}

template <typename T>
T __ldg(const T* address) {
  return *address;
}

#endif  // COLDSTREAM_TESTS_SIMT_INTRINSICS_H_
