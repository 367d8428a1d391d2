// CUDA's language as plain C++, enough of it for kernels/cuda/: what
// kernels/cuda/cuda_language.cuh includes where nvcc is not the compiler.
//
// A kernel runs block by block; each thread of a block is a fiber that runs
// until a barrier or a warp operation stops it (tests/simt/block.h). Global
// memory is host memory, so AddressSanitizer sees reads and writes past its
// end, in shared memory too. What a race would leave to chance is decided by
// SetLaneOrder: results that differ between orders show a missing barrier.
#ifndef COLDSTREAM_TESTS_SIMT_SIMT_H_
#define COLDSTREAM_TESTS_SIMT_SIMT_H_

#include "tests/simt/atomics.h"
#include "tests/simt/block.h"
#include "tests/simt/half_types.h"
#include "tests/simt/intrinsics.h"
#include "tests/simt/kernel_queue.h"
#include "tests/simt/vector_types.h"
#include "tests/simt/warp.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

#endif  // COLDSTREAM_TESTS_SIMT_SIMT_H_
