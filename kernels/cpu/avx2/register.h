// The AVX2 row of the table of operations (with FMA and F16C): one function a
// file, each overrides its entries of Ops.
//
// The files are compiled with their instruction set's flags, live in anonymous
// namespaces and call no inline function with external linkage (std::min
// included): the linker keeps one copy of such a function, and the AVX2 one
// would crash an older CPU. Where the compiler has no x86 target they are
// empty.
#ifndef COLDSTREAM_KERNELS_CPU_AVX2_REGISTER_H_
#define COLDSTREAM_KERNELS_CPU_AVX2_REGISTER_H_

#include "kernels/ops.h"

namespace coldstream {

void RegisterAvx2Attention(Ops* ops);
void RegisterAvx2Elementwise(Ops* ops);  // add, scale, to_f16, all_finite
void RegisterAvx2LayerNorm(Ops* ops);
void RegisterAvx2MatmulF32(Ops* ops);     // F32, F16, BF16
void RegisterAvx2MatmulQ8_256(Ops* ops);  // types of 256-value blocks
void RegisterAvx2MatmulQ8_32(Ops* ops);   // types of 32-value blocks
void RegisterAvx2Quantize(Ops* ops);
void RegisterAvx2RmsNorm(Ops* ops);
void RegisterAvx2Rope(Ops* ops);
void RegisterAvx2Swiglu(Ops* ops);

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_CPU_AVX2_REGISTER_H_
