// The key of a logit, made and read on the GPU (kernels/cuda/logit_key.h says
// what it is).
#pragma once

#include "kernels/best_logits.h"
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

// LogitChoice{} of kNoChoice.
__device__ inline LogitChoice ChoiceOf(LogitKey key) {
  constexpr unsigned kMinusInfinityBits = 0xff800000u;
  const unsigned ordered = static_cast<unsigned>(key >> 32);
  unsigned bits = ordered >> 31 != 0 ? ordered ^ 0x80000000u : ~ordered;
  if (key == kNoChoice) bits = kMinusInfinityBits;
  // kNoChoice has all bits of the id: -1.
  return LogitChoice{__uint_as_float(bits),
                     static_cast<int32_t>(~static_cast<unsigned>(key))};
}

}  // namespace coldstream::cuda
