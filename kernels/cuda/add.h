// Sums of vectors on the GPU.
#ifndef COLDSTREAM_KERNELS_CUDA_ADD_H_
#define COLDSTREAM_KERNELS_CUDA_ADD_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"

namespace coldstream::cuda {

// out[i] += x[i], as Ops::add bit for bit.
Status Add(const float* x, int64_t n, float* out, Stream* stream);

// x[t, i] += bias[i]; x: [rows, n].
Status AddBias(const float* bias, int64_t rows, int64_t n, float* x,
               Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_ADD_H_
