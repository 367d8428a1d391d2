// Activations to 8-bit numbers on the GPU.
#ifndef COLDSTREAM_KERNELS_CUDA_QUANTIZE_H_
#define COLDSTREAM_KERNELS_CUDA_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

#include "base/device.h"
#include "base/status.h"
#include "kernels/ops.h"

namespace coldstream::cuda {

// rows of x ([rows, k]) in `format` (kQ8_32 or kQ8_256; k a multiple of its
// block) as kernels/activations.h lays them out, row r at out + r *
// ActivationRowBytes(format, k). The bytes are those of the scalar row of the
// ops table.
Status Quantize(ActivationFormat format, const float* x, int64_t rows,
                int64_t k, std::byte* out, Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_QUANTIZE_H_
