// A thread decodes one part of a block (kernels/cuda/block_part.cuh), or eight
// plain values. The arithmetic is that of the scalar row, in its order.

#include <cstdint>

#include "base/check.h"
#include "kernels/cuda/block_part.cuh"
#include "kernels/cuda/blocks_256.cuh"
#include "kernels/cuda/blocks_32.cuh"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/dequantize.h"
#include "kernels/cuda/float_weights.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/load_words.cuh"

namespace coldstream::cuda {
namespace {

// Threads along a row, and rows of a block of threads.
constexpr unsigned kAlong = 32;
constexpr unsigned kRows = 8;

struct DequantizeParams {
  const uint8_t* weights;
  uint64_t row_bytes;
  int64_t rows;
  int64_t cols;
  float* out;
};

// Calls work(row of weights, row of out) for the thread's rows.
template <typename Work>
__device__ void ForEachRow(const DequantizeParams& p, Work work) {
  const int64_t step = int64_t{gridDim.y} * kRows;
  for (int64_t row = int64_t{blockIdx.y} * kRows + threadIdx.y; row < p.rows;
       row += step) {
    work(p.weights + static_cast<uint64_t>(row) * p.row_bytes,
         p.out + row * p.cols);
  }
}

__device__ int64_t IndexAlongRow() {
  return int64_t{blockIdx.x} * kAlong + threadIdx.x;
}

// The four numbers of a word.
template <typename Part>
__device__ float4 ValuesOf(const Part& part, int group, uint32_t word) {
  const float scale = part.d * static_cast<float>(part.scale[group]);
  float min = 0;
  if constexpr (Part::kMinima)
    min = part.dmin * static_cast<float>(part.min[group]);
  float values[4];
  COLDSTREAM_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int q = static_cast<int8_t>(word >> (8 * i) & 0xffu);
    values[i] = scale * static_cast<float>(q);
    if constexpr (Part::kMinima) values[i] -= min;
  }
  return make_float4(values[0], values[1], values[2], values[3]);
}

template <typename Block, typename Words>
__global__ void DequantizeBlocksKernel(DequantizeParams p) {
  using Part = typename Block::Part;
  const int64_t block = IndexAlongRow() / Block::kParts;
  const int part = static_cast<int>(IndexAlongRow() % Block::kParts);
  if (block >= p.cols / Block::kValues) return;
  ForEachRow(p, [&](const uint8_t* row, float* out) {
    const Part decoded =
        Block::template Decode<Words>(row + block * Block::kBytes, part);
    COLDSTREAM_UNROLL
    for (int g = 0; g < Part::kGroups; ++g) {
      float4* to = reinterpret_cast<float4*>(out + block * Block::kValues +
                                             Block::GroupBegin(part, g));
      COLDSTREAM_UNROLL
      for (int i = 0; i < Part::kWords; ++i)
        to[i] = ValuesOf(decoded, g, decoded.q[g][i]);
    }
  });
}

template <DType type>
__global__ void DequantizeFloatsKernel(DequantizeParams p) {
  const int64_t begin = 8 * IndexAlongRow();
  const int64_t end = begin + 8 < p.cols ? begin + 8 : p.cols;
  ForEachRow(p, [&](const uint8_t* row, float* out) {
    for (int64_t i = begin; i < end; ++i)
      out[i] = LoadFloat<type>(row + i * FloatBytes(type));
  });
}

// parts: threads along a row.
template <auto kernel>
Status LaunchOver(const TensorView& weight, int64_t parts, float* out,
                  Stream* stream) {
  const DequantizeParams params = {
      .weights = reinterpret_cast<const uint8_t*>(weight.data),
      .row_bytes = weight.row_bytes(),
      .rows = weight.rows,
      .cols = weight.cols,
      .out = out};
  const dim3 grid(Blocks(parts, kAlong),
                  GridRows((weight.rows + kRows - 1) / kRows));
  return Launch<kernel>(grid, dim3(kAlong, kRows), 0, stream, params);
}

template <typename Block>
Status DequantizeBlocks(const TensorView& weight, float* out, Stream* stream) {
  const int64_t parts = weight.cols / Block::kValues * Block::kParts;
  constexpr int step = NaturalStep(Block::kBytes);
  if constexpr (step >= 4) {
    if (reinterpret_cast<uintptr_t>(weight.data) % step == 0) {
      return LaunchOver<DequantizeBlocksKernel<Block, AlignedWords<step>>>(
          weight, parts, out, stream);
    }
  }
  return LaunchOver<DequantizeBlocksKernel<Block, AnyWords>>(weight, parts, out,
                                                             stream);
}

template <DType type>
Status DequantizeFloats(const TensorView& weight, float* out, Stream* stream) {
  return LaunchOver<DequantizeFloatsKernel<type>>(weight, (weight.cols + 7) / 8,
                                                  out, stream);
}

}  // namespace

Status Dequantize(const TensorView& weight, float* out, Stream* stream) {
  CHECK(reinterpret_cast<uintptr_t>(out) % 16 == 0);
  if (weight.rows == 0 || weight.cols == 0) return absl::OkStatus();
  switch (weight.type) {
    case DType::kF32:
      return DequantizeFloats<DType::kF32>(weight, out, stream);
    case DType::kF16:
      return DequantizeFloats<DType::kF16>(weight, out, stream);
    case DType::kBF16:
      return DequantizeFloats<DType::kBF16>(weight, out, stream);
    case DType::kQ8_0:
      return DequantizeBlocks<Q8_0Block>(weight, out, stream);
    case DType::kQ4_0:
      return DequantizeBlocks<Q4_0Block>(weight, out, stream);
    case DType::kQ4_1:
      return DequantizeBlocks<Q4_1Block>(weight, out, stream);
    case DType::kQ5_0:
      return DequantizeBlocks<Q5_0Block>(weight, out, stream);
    case DType::kQ5_1:
      return DequantizeBlocks<Q5_1Block>(weight, out, stream);
    case DType::kIQ4_NL:
      return DequantizeBlocks<IQ4_NLBlock>(weight, out, stream);
    case DType::kMXFP4:
      return DequantizeBlocks<MXFP4Block>(weight, out, stream);
    case DType::kQ2_K:
      return DequantizeBlocks<Q2_KBlock>(weight, out, stream);
    case DType::kQ3_K:
      return DequantizeBlocks<Q3_KBlock>(weight, out, stream);
    case DType::kQ4_K:
      return DequantizeBlocks<Q4_KBlock>(weight, out, stream);
    case DType::kQ5_K:
      return DequantizeBlocks<Q5_KBlock>(weight, out, stream);
    case DType::kQ6_K:
      return DequantizeBlocks<Q6_KBlock>(weight, out, stream);
    case DType::kIQ4_XS:
      return DequantizeBlocks<IQ4_XSBlock>(weight, out, stream);
  }
  return absl::OkStatus();
}

}  // namespace coldstream::cuda
