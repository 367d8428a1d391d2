// Rows of numbers as F16, each row scaled by a power of two of its own: what
// tensor cores multiply.
//
// Why F16 and not BF16 or TF32: of F16's eleven bits none is spent on range,
// since a row's largest number is brought to [2^14, 2^15). A value is rounded
// by at most 2^-11 of itself, or 2^-39 of its row's largest: more exact than
// the 8-bit activations of the sweeps by a factor of ten, at the full rate of
// the cards, for any activations (models make some beyond 65504) and any
// weights (BF16 and MXFP4 have the range of F32). BF16 would round by 2^-9,
// TF32 take twice the memory and time. Scaling by powers of two rounds nothing.
#ifndef COLDSTREAM_KERNELS_CUDA_SCALED_HALF_H_
#define COLDSTREAM_KERNELS_CUDA_SCALED_HALF_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"
#include "base/tensor_view.h"

namespace coldstream::cuda {

// Values from one row to the next: rows are padded with zeros to whole vectors.
inline int64_t ScaledHalfStride(int64_t cols) { return (cols + 7) / 8 * 8; }

// out: F16 [rows.rows, ScaledHalfStride(cols)] and exponents [rows.rows], with
// row[i] = out[i] * 2^exponent, rounded to nearest even. Rows of any type. A
// row with a NaN or an infinity keeps them, with exponent 0. `out` lies at a
// multiple of 16 bytes; the rows as the weights of kernels/cuda/matvec.h.
Status ToScaledHalf(const TensorView& rows, uint16_t* out, int32_t* exponents,
                    Stream* stream);

// products[t, r] *= 2^(row_exponents[r] + token_exponents[t]); products:
// [tokens, stride], the first `rows` of each.
Status UndoScales(const int32_t* row_exponents, const int32_t* token_exponents,
                  int64_t rows, int64_t tokens, float* products, int64_t stride,
                  Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_SCALED_HALF_H_
