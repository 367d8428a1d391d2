// Products of weights with all tokens of a pass on the GPU.
//
//   DeviceMatmul matmul(limits, scratch, gemm, stream);
//   matmul.SetInput(x, tokens, k);         // kept, not copied
//   matmul.Run(wq, q, q_stride);           // wq, wk, wv share one SetInput
//
// Up to kSweepTokens tokens: sweeps of the weights, eight tokens each
// (kernels/cuda/matvec.h), on 8-bit activations. Beyond: tiles of rows are made
// F16 (kernels/cuda/scaled_half.h) and multiplied by a GEMM; F32 weights stay
// F32. The forms of the input are made when a product first asks for them.
//
// Which of the two, and the tiles, follow from shape and tile_bytes alone: a
// result does not depend on where the weights lie. Among sweeps a token's
// result does not depend on its batch mates either; between a sweep and a GEMM
// it differs within their rounding.
//
// Alignment: x 16 bytes. Errors: Internal. Thread-safety: one call at a
// time.
#ifndef COLDSTREAM_KERNELS_CUDA_MATMUL_H_
#define COLDSTREAM_KERNELS_CUDA_MATMUL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/device.h"
#include "base/status.h"
#include "base/tensor_view.h"
#include "kernels/cuda/gemm.h"
#include "kernels/ops.h"

namespace coldstream::cuda {

// Four sweeps read a Q4 weight 4 x 0.56 bytes; the other way it is read once
// and its F16 form written and read, 0.56 + 2 x 2. Not measured on a card yet.
inline constexpr int64_t kSweepTokens = 32;

struct MatmulLimits {
  int64_t tokens = 0;  // most of one SetInput
  int64_t k = 0;       // widest input
  int64_t rows = 0;    // most of one weight
  // Of a tile of weights as F16 or F32: large enough that a GEMM fills a card,
  // small enough that the second-level cache of a large one holds most of it.
  int64_t tile_bytes = int64_t{32} << 20;
};

class DeviceMatmul {
 public:
  // Device memory for `limits`, and what of it the GEMM needs (0 where there
  // are never enough tokens for one).
  static uint64_t ScratchBytes(const MatmulLimits& limits);
  static bool NeedsGemm(const MatmulLimits& limits) {
    return limits.tokens > kSweepTokens;
  }

  // `scratch`: ScratchBytes of device memory at a multiple of 256 bytes. `gemm`
  // may be null unless NeedsGemm. All must outlive it.
  DeviceMatmul(const MatmulLimits& limits, std::span<std::byte> scratch,
               Gemm* gemm, Stream* stream);

  // x: [tokens, k], unchanged until the last Run.
  Status SetInput(const float* x, int64_t tokens, int64_t k);
  // out[t, r] = weight[r] . x[t]; out: [tokens, out_stride]. weight.cols is k.
  Status Run(const TensorView& weight, float* out, int64_t out_stride);

 private:
  int64_t TileRows(int64_t row_bytes) const;
  Status RunSweeps(const TensorView& weight, float* out, int64_t out_stride);
  Status RunTiles(const TensorView& weight, float* out, int64_t out_stride);
  Status RunHalfTile(const TensorView& tile, float* out, int64_t out_stride);
  Status RunFloatTile(const TensorView& tile, float* out, int64_t out_stride);
  Status MakeQuantized(ActivationFormat format);
  Status MakeHalf();

  const MatmulLimits limits_;
  Gemm* const gemm_;
  Stream* const stream_;
  // Parts of the scratch.
  std::array<std::byte*, kActivationFormats> quantized_ = {};
  uint16_t* half_ = nullptr;
  int32_t* token_exponents_ = nullptr;
  std::byte* tile_ = nullptr;
  int32_t* row_exponents_ = nullptr;

  const float* x_ = nullptr;
  int64_t tokens_ = 0;
  int64_t k_ = 0;
  std::array<bool, kActivationFormats> quantized_made_ = {};
  bool half_made_ = false;
};

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_MATMUL_H_
