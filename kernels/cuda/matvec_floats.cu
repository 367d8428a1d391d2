// Products with F32, F16 and BF16 weights; activations are floats.
//
// A part is eight values of a row (fewer at its end), added up in order. Where
// rows are whole vectors of 16 bytes they are loaded as such, else value by
// value: the sums are the same.

#include <cstdint>

#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/float_weights.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/load_words.cuh"
#include "kernels/cuda/matvec.h"
#include "kernels/cuda/matvec_rows.cuh"

namespace coldstream::cuda {
namespace {

constexpr int kPart = 8;

enum class Loads { kVectors, kSingle };

// Eight values of a row from value `begin`; zeros past its end. Activations are
// kF32 weights here.
template <DType type, Loads loads>
__device__ void LoadPart(const uint8_t* row, int64_t begin, int64_t k,
                         float (&values)[kPart]) {
  constexpr int size = FloatBytes(type);
  if constexpr (loads == Loads::kVectors) {
    uint32_t words[kPart * size / 4];
    AlignedWords<16>::Load(row + begin * size, words);
    WidenWords<type>(words, values);
  } else {
    COLDSTREAM_UNROLL
    for (int i = 0; i < kPart; ++i) {
      const int64_t at = begin + i;
      values[i] = at < k ? LoadFloat<type>(row + at * size) : 0.0f;
    }
  }
}

template <DType type, Loads loads, int tokens>
__global__ void __launch_bounds__(32 * kMatvecWarps)
    MatvecFloatsKernel(MatvecParams p) {
  constexpr int rows = MatvecRows(tokens);
  const int64_t first_row = int64_t{blockIdx.x} * rows;
  float sums[rows * tokens] = {};
  const int64_t parts = (p.k + kPart - 1) / kPart;
  for (int64_t i = threadIdx.x; i < parts; i += blockDim.x) {
    float w[rows][kPart];
    COLDSTREAM_UNROLL
    for (int r = 0; r < rows; ++r) {
      const int64_t at = first_row + r < p.rows ? first_row + r : p.rows - 1;
      LoadPart<type, loads>(p.weights + static_cast<uint64_t>(at) * p.row_bytes,
                            i * kPart, p.k, w[r]);
    }
    COLDSTREAM_UNROLL
    for (int t = 0; t < tokens; ++t) {
      float x[kPart];
      LoadPart<DType::kF32, loads>(
          p.activations + (t < p.tokens
                               ? static_cast<uint64_t>(t) * p.activation_stride
                               : 0),
          i * kPart, p.k, x);
      COLDSTREAM_UNROLL
      for (int r = 0; r < rows; ++r) {
        float& sum = sums[r * tokens + t];
        COLDSTREAM_UNROLL
        for (int j = 0; j < kPart; ++j) sum = fmaf(w[r][j], x[j], sum);
      }
    }
  }
  StoreSums<tokens, rows>(p, first_row, sums);
}

template <DType type, Loads loads>
struct MatvecFloatsFor {
  template <int tokens>
  static constexpr auto kRun = MatvecFloatsKernel<type, loads, tokens>;
};

template <DType type>
Status LaunchMatvecFloats(const MatmulArgs& args, Stream* stream) {
  const MatvecParams params = ParamsOf(args);
  const int64_t parts = (params.k + kPart - 1) / kPart;
  const bool whole_vectors =
      params.k % kPart == 0 &&
      reinterpret_cast<uintptr_t>(params.weights) % 16 == 0;
  if (whole_vectors) {
    return LaunchMatvec<MatvecFloatsFor<type, Loads::kVectors>>(params, parts,
                                                                stream);
  }
  return LaunchMatvec<MatvecFloatsFor<type, Loads::kSingle>>(params, parts,
                                                             stream);
}

}  // namespace

Status MatvecFloats(const MatmulArgs& args, Stream* stream) {
  switch (args.weight.type) {
    case DType::kF32:
      return LaunchMatvecFloats<DType::kF32>(args, stream);
    case DType::kF16:
      return LaunchMatvecFloats<DType::kF16>(args, stream);
    case DType::kBF16:
      return LaunchMatvecFloats<DType::kBF16>(args, stream);
    default:
      CHECK(!"a type of plain floats");
  }
  return absl::OkStatus();
}

}  // namespace coldstream::cuda
