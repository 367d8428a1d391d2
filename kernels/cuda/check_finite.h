// Which of a pass's checked tensors was the first to hold an infinity or NaN.
//
//   ResetTag(lowest, stream);                    // a pass begins
//   CheckFinite(x, n, /*tag=*/layer, lowest, stream);
//   ... copy *lowest to the host: a tag, or kNoTag
#ifndef COLDSTREAM_KERNELS_CUDA_CHECK_FINITE_H_
#define COLDSTREAM_KERNELS_CUDA_CHECK_FINITE_H_

#include <cstdint>
#include <limits>

#include "base/device.h"
#include "base/status.h"

namespace coldstream::cuda {

inline constexpr int32_t kNoTag = std::numeric_limits<int32_t>::max();

// *lowest = kNoTag.
Status ResetTag(int32_t* lowest, Stream* stream);

// *lowest = min(*lowest, tag) if any of x is an infinity or NaN.
Status CheckFinite(const float* x, int64_t n, int32_t tag, int32_t* lowest,
                   Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_CHECK_FINITE_H_
