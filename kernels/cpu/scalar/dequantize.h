// Exact dequantisation by type: the embedding look-up of every row of the ops
// table, and the first half of the scalar product.
#ifndef COLDSTREAM_KERNELS_CPU_SCALAR_DEQUANTIZE_H_
#define COLDSTREAM_KERNELS_CPU_SCALAR_DEQUANTIZE_H_

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace coldstream {

// n values from `row`; n is a multiple of the type's block.
using DequantizeFn = void (*)(const std::byte* row, int64_t n, float* out);

// nullptr for a type of the other group.
DequantizeFn ScalarDequantize32(DType type);   // plain types, 32-value blocks
DequantizeFn ScalarDequantize256(DType type);  // K-quants and IQ4_XS

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_CPU_SCALAR_DEQUANTIZE_H_
