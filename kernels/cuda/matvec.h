// Products of a weight matrix with one to eight tokens on the GPU, in one sweep
// of the weights: what decoding and small batches are made of.
//
// The weights of quantised types are multiplied as they are with 8-bit
// activations (four products an instruction, whole-number sums within a block);
// F32, F16 and BF16 weights with floats. MatmulArgs as of kernels/ops.h, with
// all pointers on the device.
//
// Promise (tested): a token's result depends on its activations and the weights
// alone, bit for bit: not on the other tokens, nor on where the weights lie.
//
// Alignment: activations and their stride 16 bytes, or 4 where a row is not a
// multiple of eight values; out 4; weights any. Where
// the weights do not begin and end at multiples of four bytes, the words that
// hold their first and last bytes must be readable.
// Errors: Internal (the launch was refused).
#ifndef COLDSTREAM_KERNELS_CUDA_MATVEC_H_
#define COLDSTREAM_KERNELS_CUDA_MATVEC_H_

#include "base/device.h"
#include "base/status.h"
#include "kernels/ops.h"

namespace coldstream::cuda {

// The most tokens of one call.
inline constexpr int kMatvecTokens = 8;

// Any type; the activations in the format of Ops::matmul for it.
Status Matvec(const MatmulArgs& args, Stream* stream);

// The three families behind it: see their files.
Status MatvecBlocks32(const MatmulArgs& args, Stream* stream);
Status MatvecBlocks256(const MatmulArgs& args, Stream* stream);
Status MatvecFloats(const MatmulArgs& args, Stream* stream);

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_MATVEC_H_
