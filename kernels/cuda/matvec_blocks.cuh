// The product of quantised blocks with 8-bit activations, for any type whose
// blocks come as BlockParts.
//
// A part's products are summed as whole numbers, each group's sum times its
// whole scale; that sum and the scales d (weights) and s (activations) then
// give one term of the float sum: (d s) sum - (dmin s) minima. Taking d s first
// keeps the extreme scales of MXFP4 from overflowing on the way.
#pragma once

#include <cstdint>

#include "kernels/activations.h"
#include "kernels/cuda/block_part.cuh"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/load_words.cuh"
#include "kernels/cuda/matvec_rows.cuh"

namespace coldstream::cuda {

// What a token's activations contribute to a part: their numbers, in the
// part's order, and their scale.
template <typename Part>
struct ActivationPart {
  uint32_t q[Part::kGroups][Part::kWords];
  float scale;
};

// Scales of a row of activations, as kernels/activations.h lays them out.
template <int block_values>
__device__ inline const float* ActivationScales(const uint8_t* row, int64_t k) {
  return reinterpret_cast<const float*>(
      block_values == 32 ? row + k : row + k + k / 8 + k / 16);
}

template <typename Block>
__device__ inline ActivationPart<typename Block::Part> LoadActivations(
    const uint8_t* row, int64_t k, int64_t block, int part) {
  using Part = typename Block::Part;
  ActivationPart<Part> x;
  COLDSTREAM_UNROLL
  for (int g = 0; g < Part::kGroups; ++g) {
    AlignedWords<4 * Part::kWords>::Load(
        row + block * Block::kValues + Block::GroupBegin(part, g), x.q[g]);
  }
  x.scale = ActivationScales<Block::kValues>(row, k)[block];
  return x;
}

// sum plus the part's product with x.
template <typename Part>
__device__ inline float AddProduct(const Part& w, const ActivationPart<Part>& x,
                                   float sum) {
  int products = 0;
  int minima = 0;
  COLDSTREAM_UNROLL
  for (int g = 0; g < Part::kGroups; ++g) {
    int group = 0;
    int group_x = 0;
    COLDSTREAM_UNROLL
    for (int i = 0; i < Part::kWords; ++i) {
      const int q = static_cast<int>(x.q[g][i]);
      group = __dp4a(static_cast<int>(w.q[g][i]), q, group);
      if constexpr (Part::kMinima) group_x = __dp4a(0x01010101, q, group_x);
    }
    products += w.scale[g] * group;
    if constexpr (Part::kMinima) minima += w.min[g] * group_x;
  }
  sum = fmaf(w.d * x.scale, static_cast<float>(products), sum);
  if constexpr (Part::kMinima)
    sum = fmaf(-(w.dmin * x.scale), static_cast<float>(minima), sum);
  return sum;
}

// Rows and tokens beyond the last are computed as the last row and the first
// token, and not stored.
template <typename Block, typename Words, int tokens>
__global__ void __launch_bounds__(32 * kMatvecWarps)
    MatvecBlocksKernel(MatvecParams p) {
  constexpr int rows = MatvecRows(tokens);
  using Part = typename Block::Part;
  const int64_t first_row = int64_t{blockIdx.x} * rows;
  const uint8_t* row[rows];
  COLDSTREAM_UNROLL
  for (int r = 0; r < rows; ++r) {
    const int64_t at = first_row + r < p.rows ? first_row + r : p.rows - 1;
    row[r] = p.weights + static_cast<uint64_t>(at) * p.row_bytes;
  }
  float sums[rows * tokens] = {};
  const int64_t parts = p.k / Block::kValues * Block::kParts;
  for (int64_t i = threadIdx.x; i < parts; i += blockDim.x) {
    const int64_t block = i / Block::kParts;
    const int part = static_cast<int>(i % Block::kParts);
    Part w[rows];
    COLDSTREAM_UNROLL
    for (int r = 0; r < rows; ++r) {
      w[r] =
          Block::template Decode<Words>(row[r] + block * Block::kBytes, part);
    }
    COLDSTREAM_UNROLL
    for (int t = 0; t < tokens; ++t) {
      const uint8_t* x_row =
          p.activations +
          (t < p.tokens ? static_cast<uint64_t>(t) * p.activation_stride : 0);
      const ActivationPart<Part> x =
          LoadActivations<Block>(x_row, p.k, block, part);
      COLDSTREAM_UNROLL
      for (int r = 0; r < rows; ++r) {
        float& sum = sums[r * tokens + t];
        sum = AddProduct(w[r], x, sum);
      }
    }
  }
  StoreSums<tokens, rows>(p, first_row, sums);
}

template <typename Block, typename Words>
struct MatvecBlocksFor {
  template <int tokens>
  static constexpr auto kRun = MatvecBlocksKernel<Block, Words, tokens>;
};

template <typename Block>
Status LaunchMatvecBlocks(const MatmulArgs& args, Stream* stream) {
  const MatvecParams params = ParamsOf(args);
  const int64_t parts = params.k / Block::kValues * Block::kParts;
  constexpr int step = NaturalStep(Block::kBytes);
  if constexpr (step >= 4) {
    if (reinterpret_cast<uintptr_t>(params.weights) % step == 0) {
      return LaunchMatvec<MatvecBlocksFor<Block, AlignedWords<step>>>(
          params, parts, stream);
    }
  }
  return LaunchMatvec<MatvecBlocksFor<Block, AnyWords>>(params, parts, stream);
}

}  // namespace coldstream::cuda
