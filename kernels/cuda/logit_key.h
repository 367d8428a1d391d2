// A logit and its token as one number: the better choice is the larger one.
//
// The order is the sampler's: by value, then the lower id; -0 equals 0. A token
// ruled out (minus infinity) has kNoChoice. NaN and plus infinity come from a
// broken pass; they have kNoChoice too, and are told apart by the lowest id of
// them in a row, or kNoBadLogit (what the sampler refuses the row for).
#ifndef COLDSTREAM_KERNELS_CUDA_LOGIT_KEY_H_
#define COLDSTREAM_KERNELS_CUDA_LOGIT_KEY_H_

#include <cstdint>
#include <limits>

namespace coldstream::cuda {

// The type that CUDA's 64-bit atomics want.
using LogitKey = unsigned long long;
static_assert(sizeof(LogitKey) == sizeof(uint64_t));

inline constexpr LogitKey kNoChoice = 0;
inline constexpr int32_t kNoBadLogit = std::numeric_limits<int32_t>::max();

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_LOGIT_KEY_H_
