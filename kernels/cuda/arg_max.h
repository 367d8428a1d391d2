// The best token of each row of logits on the GPU, so that greedy decoding
// brings home eight bytes a row in place of the logits.
#ifndef COLDSTREAM_KERNELS_CUDA_ARG_MAX_H_
#define COLDSTREAM_KERNELS_CUDA_ARG_MAX_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"
#include "kernels/cuda/logit_key.h"

namespace coldstream::cuda {

// best[r]: the largest key of logits [rows, stride], first n of each row (below
// 2^31), or kNoChoice. first_bad[r]: the lowest id of a NaN or plus infinity,
// or kNoBadLogit.
Status ArgMax(const float* logits, int64_t stride, int64_t rows, int64_t n,
              LogitKey* best, int32_t* first_bad, Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_ARG_MAX_H_
