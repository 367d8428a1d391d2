// The best k tokens of each row of logits on the GPU, best first, so that
// sampling brings home k keys a row in place of the logits.
//
// Chunks are sorted and their best k kept, and again those of the chunks, until
// one chunk is left. The order is total: the result is exact and the same in
// every run.
#ifndef COLDSTREAM_KERNELS_CUDA_TOP_K_H_
#define COLDSTREAM_KERNELS_CUDA_TOP_K_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"
#include "kernels/cuda/logit_key.h"

namespace coldstream::cuda {

inline constexpr int64_t kMostTopK = 1024;

// Keys of device memory that TopK needs for its work.
int64_t TopKScratch(int64_t rows, int64_t n, int64_t k);

// best: [rows, k], the largest keys of logits [rows, stride], first n of each
// row (below 2^31), then kNoChoice where there are fewer. first_bad[r]: the
// lowest id of a NaN or plus infinity, or kNoBadLogit. k is 1 to kMostTopK.
Status TopK(const float* logits, int64_t stride, int64_t rows, int64_t n,
            int64_t k, LogitKey* scratch, LogitKey* best, int32_t* first_bad,
            Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_TOP_K_H_
