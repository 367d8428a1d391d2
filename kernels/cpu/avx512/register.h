// The AVX-512 row of the table of operations (F, BW, DQ, VL; with VNNI where
// present): one function a file, each overrides its entries of Ops.
//
// The files are compiled with their instruction set's flags, live in anonymous
// namespaces and call no inline function with external linkage (std::min
// included): the linker keeps one copy of such a function, and the AVX-512 one
// would crash an older CPU. Where the compiler has no x86 target they are
// empty.
#ifndef COLDSTREAM_KERNELS_CPU_AVX512_REGISTER_H_
#define COLDSTREAM_KERNELS_CPU_AVX512_REGISTER_H_

#include "kernels/ops.h"

namespace coldstream {

void RegisterAvx512Attention(Ops* ops);
void RegisterAvx512Elementwise(Ops* ops);  // add, scale, to_f16, all_finite
void RegisterAvx512FloatMatmul(Ops* ops);  // F32, F16, BF16 weights
void RegisterAvx512LayerNorm(Ops* ops);
void RegisterAvx512Matmul(Ops* ops);  // quantised weights, without VNNI
void RegisterAvx512Quantize(Ops* ops);
void RegisterAvx512RmsNorm(Ops* ops);
void RegisterAvx512Rope(Ops* ops);
void RegisterAvx512Swiglu(Ops* ops);
// Over RegisterAvx512Matmul, for CPUs with avx512_vnni; the same bits.
void RegisterAvx512VnniMatmul(Ops* ops);

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_CPU_AVX512_REGISTER_H_
