// Keys and values of a pass's tokens into the paged cache on the GPU.
#ifndef COLDSTREAM_KERNELS_CUDA_KV_STORE_H_
#define COLDSTREAM_KERNELS_CUDA_KV_STORE_H_

#include "base/device.h"
#include "base/status.h"
#include "kernels/cuda/device_tokens.h"
#include "kernels/pass_ops.h"

namespace coldstream::cuda {

// k: [tokens, kv_heads, key_dim] and v: [tokens, kv_heads, value_dim] to the
// tokens' positions, as the layer's type: rounded to nearest even, what is out of
// range of f16 infinity; or quantised with the CPU's bytes (kernels/kv_rows.h).
Status StoreKv(const float* k, const float* v, const DeviceTokens& tokens,
               const KvLayer& layer, Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_KV_STORE_H_
