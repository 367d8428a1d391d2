// The key of a logit, made on the GPU (kernels/cuda/logit_key.h says what it
// is).
#pragma once

#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/logit_key.h"

namespace coldstream::cuda {

// `id` becomes part of *first_bad where the logit is NaN or plus infinity.
__device__ inline LogitKey KeyOf(float logit, int64_t id, int32_t* first_bad) {
  if (!isfinite(logit)) {
    const bool ruled_out = logit < 0;
    if (!ruled_out) *first_bad = min(*first_bad, static_cast<int32_t>(id));
    return kNoChoice;
  }
  const unsigned bits = __float_as_uint(logit + 0.0f);  // -0 becomes 0
  const unsigned ordered = bits >> 31 != 0 ? ~bits : bits ^ 0x80000000u;
  return LogitKey{ordered} << 32 | ~static_cast<unsigned>(id);
}

}  // namespace coldstream::cuda
