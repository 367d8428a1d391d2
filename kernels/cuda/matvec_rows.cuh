// How a product's rows are laid over threads, and how their sums end.
//
// A block of threads works on one or two rows at a time (two where several
// tokens share them: what is loaded of the activations serves both). Its lanes
// take parts of the rows in turn: lane i parts i, i + lanes, .... There are as
// many warps, up to four, as the row has parts for. So the parts a lane adds
// up, and their order, follow from the row's length alone, and so do the bits
// of the result.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matvec.h"

namespace coldstream::cuda {

inline constexpr int kMatvecWarps = 4;

// MatmulArgs as kernels take them.
struct MatvecParams {
  const uint8_t* weights;
  uint64_t row_bytes;
  int64_t rows;
  int64_t k;
  const uint8_t* activations;
  uint64_t activation_stride;
  int tokens;
  float* out;
  int64_t out_stride;
};

inline MatvecParams ParamsOf(const MatmulArgs& args) {
  return {.weights = reinterpret_cast<const uint8_t*>(args.weight.data),
          .row_bytes = args.weight.row_bytes(),
          .rows = args.weight.rows,
          .k = args.weight.cols,
          .activations = reinterpret_cast<const uint8_t*>(args.activations),
          .activation_stride = args.activation_stride,
          .tokens = static_cast<int>(args.tokens),
          .out = args.out,
          .out_stride = args.out_stride};
}

// Rows of a block of threads.
__host__ __device__ constexpr int MatvecRows(int tokens) {
  return tokens == 1 ? 1 : 2;
}

// Launches kernel<tokens>, tokens rounded up to a power of two: those beyond
// params.tokens are computed for nothing and not stored. Kernel: a template
// whose ::kRun<tokens> is the __global__ function. parts: of a row.
template <typename Kernel>
Status LaunchMatvec(const MatvecParams& params, int64_t parts, Stream* stream) {
  const int64_t warps = (parts + 31) / 32;
  const unsigned threads =
      static_cast<unsigned>(32 * (warps < kMatvecWarps ? warps : kMatvecWarps));
  const unsigned blocks = Blocks(params.rows, MatvecRows(params.tokens));
  if (params.tokens == 1)
    return Launch<Kernel::template kRun<1>>(blocks, threads, 0, stream, params);
  if (params.tokens == 2)
    return Launch<Kernel::template kRun<2>>(blocks, threads, 0, stream, params);
  if (params.tokens <= 4)
    return Launch<Kernel::template kRun<4>>(blocks, threads, 0, stream, params);
  return Launch<Kernel::template kRun<8>>(blocks, threads, 0, stream, params);
}

// Sums each of n values (a power of two up to 32) over the lanes of a warp, in
// the tree (((lane ^ 16) ^ 8) ... ^ 1) whatever n is. In each step a lane gives
// away half of its values and keeps the sums of the other half, so that 16
// values cost 16 shuffles, not 80. Afterwards lane i holds value i n / 32 in
// values[0].
template <int n>
__device__ inline void SumOverWarp(float (&values)[n]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  int held = n;
  COLDSTREAM_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) {
    const bool upper = (lane & distance) != 0;
    if (held > 1) {
      held /= 2;
      COLDSTREAM_UNROLL
      for (int i = 0; i < n / 2; ++i) {
        if (i >= held) break;
        const float kept = upper ? values[i + held] : values[i];
        const float given = upper ? values[i] : values[i + held];
        values[i] = kept + __shfl_xor_sync(0xffffffffu, given, distance);
      }
    } else {
      values[0] += __shfl_xor_sync(0xffffffffu, values[0], distance);
    }
  }
}

// Sums over all lanes of the block and stores: sums[r * tokens + t] is of row
// first_row + r and token t.
template <int tokens, int rows>
__device__ inline void StoreSums(const MatvecParams& params, int64_t first_row,
                                 float (&sums)[rows * tokens]) {
  constexpr int n = rows * tokens;
  COLDSTREAM_SHARED(float, partial, kMatvecWarps* n);
  SumOverWarp(sums);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  if (lane % (32 / n) == 0) partial[warp * n + lane * n / 32] = sums[0];
  __syncthreads();
  const int i = static_cast<int>(threadIdx.x);
  if (i >= n) return;
  float total = partial[i];
  for (int w = 1; w < static_cast<int>(blockDim.x / 32); ++w)
    total += partial[w * n + i];
  const int64_t row = first_row + i / tokens;
  const int token = i % tokens;
  if (row < params.rows && token < params.tokens)
    params.out[token * params.out_stride + row] = total;
}

}  // namespace coldstream::cuda
