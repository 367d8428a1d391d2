// Rotary position embedding on the GPU.
#ifndef COLDSTREAM_KERNELS_CUDA_ROPE_H_
#define COLDSTREAM_KERNELS_CUDA_ROPE_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"
#include "kernels/ops.h"

namespace coldstream::cuda {

// Rotates the first rot_dim values of each head of x: [tokens, heads,
// head_dim], in place; cos_sin: [tokens, rot_dim / 2, 2].
Status Rope(float* x, const float* cos_sin, int64_t tokens, int64_t heads,
            int64_t head_dim, int64_t rot_dim, RopePairing pairing,
            Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_ROPE_H_
