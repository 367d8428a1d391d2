// Layer norm of rows on the GPU.
//
// The mean is corrected by the mean of the distances from it, so that a row far
// from zero keeps its digits in float sums; where a sum leaves the range of
// floats the row is done again in double. A row's result depends on that row
// alone.
#ifndef COLDSTREAM_KERNELS_CUDA_LAYER_NORM_H_
#define COLDSTREAM_KERNELS_CUDA_LAYER_NORM_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"

namespace coldstream::cuda {

// out[r, i] = (x[s, i] - mean) / sqrt(variance + eps) * weight[i] + bias[i],
// where s = gather[r], or r if gather is null; bias may be null. x: [.., n],
// weight and bias: [n], out: [rows, n]. In place allowed without gather.
Status LayerNorm(const float* x, const int32_t* gather, const float* weight,
                 const float* bias, float eps, int64_t rows, int64_t n,
                 float* out, Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_LAYER_NORM_H_
