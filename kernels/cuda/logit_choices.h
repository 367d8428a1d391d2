// Keys of logits as choices, on the GPU.
#ifndef COLDSTREAM_KERNELS_CUDA_LOGIT_CHOICES_H_
#define COLDSTREAM_KERNELS_CUDA_LOGIT_CHOICES_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"
#include "kernels/best_logits.h"
#include "kernels/cuda/logit_key.h"

namespace coldstream::cuda {

// choices[i]: what keys[i] is of, or LogitChoice{} for kNoChoice.
Status LogitChoices(const LogitKey* keys, int64_t n, LogitChoice* choices,
                    Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_LOGIT_CHOICES_H_
