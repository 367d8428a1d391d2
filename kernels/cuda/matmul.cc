#include "kernels/cuda/matmul.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/cuda/dequantize.h"
#include "kernels/cuda/matvec.h"
#include "kernels/cuda/memory_cutter.h"
#include "kernels/cuda/quantize.h"
#include "kernels/cuda/scaled_half.h"

namespace coldstream::cuda {
namespace {

constexpr ActivationFormat kQuantized[] = {ActivationFormat::kQ8_32,
                                           ActivationFormat::kQ8_256};

// Rows of a tile are a multiple of this, but for the last one's.
constexpr int64_t kTileRowStep = 64;

struct Parts {
  std::array<std::byte*, kActivationFormats> quantized = {};
  uint16_t* half = nullptr;
  int32_t* token_exponents = nullptr;
  std::byte* tile = nullptr;
  int32_t* row_exponents = nullptr;
};

Parts Cut(const MatmulLimits& limits, MemoryCutter* cutter) {
  Parts parts;
  for (const ActivationFormat format : kQuantized) {
    parts.quantized[static_cast<size_t>(format)] = cutter->Take<std::byte>(
        std::min(limits.tokens, kSweepTokens) *
        static_cast<int64_t>(ActivationRowBytes(format, limits.k)));
  }
  if (!DeviceMatmul::NeedsGemm(limits)) return parts;
  const int64_t stride = ScaledHalfStride(limits.k);
  parts.half = cutter->Take<uint16_t>(limits.tokens * stride);
  parts.token_exponents = cutter->Take<int32_t>(limits.tokens);
  // As floats: the wider of the two kinds of tile.
  const int64_t row_bytes = 4 * stride;
  parts.tile = cutter->Take<std::byte>(
      std::min(limits.rows * row_bytes,
               std::max(limits.tile_bytes, kTileRowStep * row_bytes)));
  parts.row_exponents = cutter->Take<int32_t>(limits.rows);
  return parts;
}

}  // namespace

uint64_t DeviceMatmul::ScratchBytes(const MatmulLimits& limits) {
  MemoryCutter cutter(nullptr);
  Cut(limits, &cutter);
  return cutter.taken();
}

DeviceMatmul::DeviceMatmul(const MatmulLimits& limits,
                           std::span<std::byte> scratch, Gemm* gemm,
                           Stream* stream)
    : limits_(limits), gemm_(gemm), stream_(stream) {
  CHECK(scratch.size() >= ScratchBytes(limits));
  CHECK(gemm != nullptr || !NeedsGemm(limits));
  MemoryCutter cutter(scratch.data());
  const Parts parts = Cut(limits, &cutter);
  quantized_ = parts.quantized;
  half_ = parts.half;
  token_exponents_ = parts.token_exponents;
  tile_ = parts.tile;
  row_exponents_ = parts.row_exponents;
}

Status DeviceMatmul::SetInput(const float* x, int64_t tokens, int64_t k) {
  CHECK(tokens <= limits_.tokens && k <= limits_.k);
  x_ = x;
  tokens_ = tokens;
  k_ = k;
  quantized_made_.fill(false);
  half_made_ = false;
  return absl::OkStatus();
}

Status DeviceMatmul::Run(const TensorView& weight, float* out,
                         int64_t out_stride) {
  CHECK(weight.cols == k_ && weight.rows <= limits_.rows);
  if (tokens_ == 0 || weight.rows == 0) return absl::OkStatus();
  return tokens_ <= kSweepTokens ? RunSweeps(weight, out, out_stride)
                                 : RunTiles(weight, out, out_stride);
}

Status DeviceMatmul::RunSweeps(const TensorView& weight, float* out,
                               int64_t out_stride) {
  const uint32_t block = InfoOf(weight.type).block_elements;
  const ActivationFormat format = block == 1    ? ActivationFormat::kF32
                                  : block == 32 ? ActivationFormat::kQ8_32
                                                : ActivationFormat::kQ8_256;
  const std::byte* rows = reinterpret_cast<const std::byte*>(x_);
  uint64_t stride = static_cast<uint64_t>(k_) * sizeof(float);
  if (format != ActivationFormat::kF32) {
    RETURN_IF_ERROR(MakeQuantized(format));
    rows = quantized_[static_cast<size_t>(format)];
    stride = ActivationRowBytes(format, k_);
  }
  for (int64_t t = 0; t < tokens_; t += kMatvecTokens) {
    RETURN_IF_ERROR(
        Matvec({.weight = weight,
                .activations = rows + static_cast<uint64_t>(t) * stride,
                .activation_stride = stride,
                .tokens = std::min<int64_t>(kMatvecTokens, tokens_ - t),
                .out = out + t * out_stride,
                .out_stride = out_stride},
               stream_));
  }
  return absl::OkStatus();
}

int64_t DeviceMatmul::TileRows(int64_t row_bytes) const {
  return std::max(limits_.tile_bytes / row_bytes / kTileRowStep, int64_t{1}) *
         kTileRowStep;
}

Status DeviceMatmul::RunTiles(const TensorView& weight, float* out,
                              int64_t out_stride) {
  const bool floats = weight.type == DType::kF32;
  const int64_t step =
      TileRows(floats ? 4 * weight.cols : 2 * ScaledHalfStride(weight.cols));
  for (int64_t row = 0; row < weight.rows; row += step) {
    const TensorView tile = {.type = weight.type,
                             .data = weight.row(row),
                             .rows = std::min(step, weight.rows - row),
                             .cols = weight.cols};
    RETURN_IF_ERROR(floats ? RunFloatTile(tile, out + row, out_stride)
                           : RunHalfTile(tile, out + row, out_stride));
  }
  return absl::OkStatus();
}

Status DeviceMatmul::RunHalfTile(const TensorView& tile, float* out,
                                 int64_t out_stride) {
  RETURN_IF_ERROR(MakeHalf());
  uint16_t* weights = reinterpret_cast<uint16_t*>(tile_);
  RETURN_IF_ERROR(ToScaledHalf(tile, weights, row_exponents_, stream_));
  RETURN_IF_ERROR(gemm_->Run({.type = GemmType::kF16,
                              .weights = weights,
                              .x = half_,
                              .rows = tile.rows,
                              .tokens = tokens_,
                              .k = ScaledHalfStride(tile.cols),
                              .out = out,
                              .out_stride = out_stride}));
  return UndoScales(row_exponents_, token_exponents_, tile.rows, tokens_, out,
                    out_stride, stream_);
}

// Through the scratch even so: a GEMM may choose its way by the alignment of
// its operands, and the weights' own depends on where they lie.
Status DeviceMatmul::RunFloatTile(const TensorView& tile, float* out,
                                  int64_t out_stride) {
  float* weights = reinterpret_cast<float*>(tile_);
  RETURN_IF_ERROR(Dequantize(tile, weights, stream_));
  return gemm_->Run({.type = GemmType::kF32,
                     .weights = weights,
                     .x = x_,
                     .rows = tile.rows,
                     .tokens = tokens_,
                     .k = tile.cols,
                     .out = out,
                     .out_stride = out_stride});
}

Status DeviceMatmul::MakeQuantized(ActivationFormat format) {
  const size_t index = static_cast<size_t>(format);
  if (quantized_made_[index]) return absl::OkStatus();
  quantized_made_[index] = true;
  return Quantize(format, x_, tokens_, k_, quantized_[index], stream_);
}

Status DeviceMatmul::MakeHalf() {
  if (half_made_) return absl::OkStatus();
  half_made_ = true;
  return ToScaledHalf({.type = DType::kF32,
                       .data = reinterpret_cast<const std::byte*>(x_),
                       .rows = tokens_,
                       .cols = k_},
                      half_, token_exponents_, stream_);
}

}  // namespace coldstream::cuda
