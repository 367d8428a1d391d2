// Weights as floats on the GPU.
#ifndef COLDSTREAM_KERNELS_CUDA_DEQUANTIZE_H_
#define COLDSTREAM_KERNELS_CUDA_DEQUANTIZE_H_

#include "base/device.h"
#include "base/status.h"
#include "base/tensor_view.h"

namespace coldstream::cuda {

// out: [weight.rows, weight.cols], exact: bit for bit as the scalar row of the
// ops table. `out` lies at a multiple of 16 bytes, or of 4 where cols is not
// one of 4; the weights anywhere, but see kernels/cuda/matvec.h on the words at
// their ends.
Status Dequantize(const TensorView& weight, float* out, Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_DEQUANTIZE_H_
