// The tokens of a pass as kernels see them: PassTokens (kernels/pass_ops.h)
// copied to the device once a pass, with the same meaning.
#ifndef COLDSTREAM_KERNELS_CUDA_DEVICE_TOKENS_H_
#define COLDSTREAM_KERNELS_CUDA_DEVICE_TOKENS_H_

#include <cstdint>

namespace coldstream::cuda {

// Addresses of the device.
struct DeviceTokens {
  int64_t count = 0;
  const int64_t* positions = nullptr;    // [count]
  const int32_t* sequence = nullptr;     // [count]
  const int32_t* block_begin = nullptr;  // [sequences + 1]
  const int32_t* blocks = nullptr;
};

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_DEVICE_TOKENS_H_
