// RMS norm of rows on the GPU.
//
// Sums are float, 512 interleaved chains and then a tree; where a sum leaves
// the range of floats the row is done again in double. A row's result depends
// on that row alone.
#ifndef COLDSTREAM_KERNELS_CUDA_RMS_NORM_H_
#define COLDSTREAM_KERNELS_CUDA_RMS_NORM_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"

namespace coldstream::cuda {

// out[r, i] = x[s, i] / sqrt(mean over i of x[s, i]^2 + eps) * weight[i], where
// s = gather[r], or r if gather is null. x: [.., n], weight: [n], out: [rows,
// n]. In place allowed without gather.
Status RmsNorm(const float* x, const int32_t* gather, const float* weight,
               float eps, int64_t rows, int64_t n, float* out, Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_RMS_NORM_H_
