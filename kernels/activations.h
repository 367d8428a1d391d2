// Rows of activations as 8-bit numbers: the layouts behind ActivationFormat.
//
// A row is a structure of arrays, each array 4-byte aligned if the row is, so
// that a kernel loads neighbours with one instruction. With n values:
//
//   kF32     float value[n]
//   kQ8_32   int8  q[n]             value = scale[i / 32] * q
//            float scale[n/32]      largest magnitude / 127
//            int32 sum[n/32]        of q
//            float scaled_sum[n/32] scale * sum, rounded once
//   kQ8_256  int8  q[n]             value = scale[i / 256] * q
//            int16 sum16[n/16]      of q, for 16-value groups
//            int16 sum32[n/32]
//            float scale[n/256]
//
// q is rounded to nearest, ties to even, in [-127, 127]. A block with a NaN or
// an infinity gets q = 0 and scale NaN: every product with it is NaN, as it
// would be in floats. A block below 2^-119 (127 / its largest value overflows)
// is zero. All rows of the ops table quantise to the same bytes.
#ifndef COLDSTREAM_KERNELS_ACTIVATIONS_H_
#define COLDSTREAM_KERNELS_ACTIVATIONS_H_

#include <cstddef>
#include <cstdint>

namespace coldstream {

struct Q8_32Row {
  const int8_t* q;
  const float* scale;
  const int32_t* sum;
  const float* scaled_sum;
};

struct Q8_256Row {
  const int8_t* q;
  const int16_t* sum16;
  const int16_t* sum32;
  const float* scale;
};

// Views of a row of k values. Static: the ISA files, compiled with their own
// flags, must not share an inline function's one copy with the rest.
static inline Q8_32Row ViewQ8_32(const std::byte* row, int64_t k) {
  const std::byte* after = row + k;
  return {reinterpret_cast<const int8_t*>(row),
          reinterpret_cast<const float*>(after),
          reinterpret_cast<const int32_t*>(after + k / 8),
          reinterpret_cast<const float*>(after + k / 4)};
}

static inline Q8_256Row ViewQ8_256(const std::byte* row, int64_t k) {
  const std::byte* after = row + k;
  return {reinterpret_cast<const int8_t*>(row),
          reinterpret_cast<const int16_t*>(after),
          reinterpret_cast<const int16_t*>(after + k / 8),
          reinterpret_cast<const float*>(after + k / 8 + k / 16)};
}

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_ACTIVATIONS_H_
