// The scalar row of the table of operations: one function a file, each fills
// its entries of Ops. Called first, so that every entry has an implementation.
//
// Scalar is the specification: written for reading, sums in double.
#ifndef COLDSTREAM_KERNELS_CPU_SCALAR_REGISTER_H_
#define COLDSTREAM_KERNELS_CPU_SCALAR_REGISTER_H_

#include "kernels/ops.h"

namespace coldstream {

void RegisterScalarAttention(Ops* ops);
void RegisterScalarElementwise(Ops* ops);  // add, scale, to_f16, all_finite
void RegisterScalarLayerNorm(Ops* ops);
void RegisterScalarMatmul(Ops* ops);  // products and dequantize, every type
void RegisterScalarQuantize(Ops* ops);
void RegisterScalarRmsNorm(Ops* ops);
void RegisterScalarRope(Ops* ops);
void RegisterScalarSwiglu(Ops* ops);

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_CPU_SCALAR_REGISTER_H_
