// A vector times a number on the GPU.
#ifndef COLDSTREAM_KERNELS_CUDA_SCALE_H_
#define COLDSTREAM_KERNELS_CUDA_SCALE_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"

namespace coldstream::cuda {

// x[i] *= factor, as Ops::scale bit for bit.
Status Scale(float factor, int64_t n, float* x, Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_SCALE_H_
