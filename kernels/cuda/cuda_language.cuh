// The language of a .cu file: the one header that each of them includes.
//
// nvcc compiles the files for the GPU. The tests compile the same files as
// plain C++ against <simt.h> (tests/simt/, found on the include path of their
// target only), where a thread of a block is a fiber. What the two do not share
// has one of these names:
//
//   COLDSTREAM_SHARED(float, tile, 256);        // __shared__ float tile[256]
//   COLDSTREAM_DYNAMIC_SHARED(float, scores);   // float*, Launch's
//   shared_bytes COLDSTREAM_UNROLL                           // #pragma unroll
//   COLDSTREAM_CONSTANT int8_t kTable[16] = ... // __constant__
//
// Rules for kernels: products and sums are fused only where the source says
// fmaf (nvcc runs with --fmad=false); every thread of a block that has not
// returned reaches each __syncthreads; masks of warp intrinsics name lanes that
// take part; offsets into tensors are 64 bits wide; no thread waits for another
// by polling memory.
#pragma once

#if defined(__CUDACC__)

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define COLDSTREAM_SHARED(type, name, count) __shared__ type name[count]
#define COLDSTREAM_DYNAMIC_SHARED(type, name)                     \
  extern __shared__ __align__(16) unsigned char dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(dynamic_shared)
#define COLDSTREAM_UNROLL _Pragma("unroll")
#define COLDSTREAM_CONSTANT __constant__

#else

#include <simt.h>

#define COLDSTREAM_SHARED(type, name, count) \
  static constinit char name##_site = 0;     \
  auto& name = coldstream::simt::SharedArray<type, (count)>(&name##_site)
#define COLDSTREAM_DYNAMIC_SHARED(type, name) \
  type* const name = reinterpret_cast<type*>(coldstream::simt::DynamicShared())
#define COLDSTREAM_UNROLL
#define COLDSTREAM_CONSTANT static const

#endif
