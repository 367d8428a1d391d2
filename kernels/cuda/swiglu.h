// The gated activation of the feed-forward part on the GPU.
#ifndef COLDSTREAM_KERNELS_CUDA_SWIGLU_H_
#define COLDSTREAM_KERNELS_CUDA_SWIGLU_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"

namespace coldstream::cuda {

// out[i] = gate[i] / (1 + exp(-gate[i])) * up[i]. In place on either allowed.
Status SwiGlu(const float* gate, const float* up, int64_t n, float* out,
              Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_SWIGLU_H_
