// Rows of weights of any type as floats, a few values at a time: exact, by the
// arithmetic of the scalar row and in its order.
//
// A row is cut into parts, one for each turn of a thread. VisitRows picks how
// rows of a tensor are read:
//
//   VisitRows(weight, [&]<typename Rows>() { ... Launch<Kernel<Rows>> ... });
//   // in the kernel, for part i < Rows::Parts(cols):
//   Rows::ForEachFour(row, cols, i,
//                     [&](int64_t first, const float (&values)[4]) {...});
//
// Values past the end of a row of plain floats are zeros; first is below
// Rows::Parts(cols) * the part's values all the same.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "base/tensor_view.h"
#include "kernels/cuda/block_part.cuh"
#include "kernels/cuda/blocks_256.cuh"
#include "kernels/cuda/blocks_32.cuh"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/float_weights.cuh"
#include "kernels/cuda/load_words.cuh"

namespace coldstream::cuda {

template <typename Block, typename Words>
struct BlockRows {
  static __host__ __device__ int64_t Parts(int64_t cols) {
    return cols / Block::kValues * Block::kParts;
  }

  template <typename Use>
  static __device__ void ForEachFour(const uint8_t* row, int64_t, int64_t i,
                                     Use use) {
    using Part = typename Block::Part;
    const int64_t block = i / Block::kParts;
    const int at = static_cast<int>(i % Block::kParts);
    const Part part =
        Block::template Decode<Words>(row + block * Block::kBytes, at);
    COLDSTREAM_UNROLL
    for (int g = 0; g < Part::kGroups; ++g) {
      const float scale = part.d * static_cast<float>(part.scale[g]);
      float min = 0;
      if constexpr (Part::kMinima)
        min = part.dmin * static_cast<float>(part.min[g]);
      COLDSTREAM_UNROLL
      for (int w = 0; w < Part::kWords; ++w) {
        float values[4];
        COLDSTREAM_UNROLL
        for (int b = 0; b < 4; ++b) {
          const int q = static_cast<int8_t>(part.q[g][w] >> (8 * b) & 0xffu);
          values[b] = scale * static_cast<float>(q);
          if constexpr (Part::kMinima) values[b] -= min;
        }
        use(block * Block::kValues + Block::GroupBegin(at, g) + 4 * w, values);
      }
    }
  }
};

// Eight values a part.
template <DType type, typename Words>
struct FloatRows {
  static __host__ __device__ int64_t Parts(int64_t cols) {
    return (cols + 7) / 8;
  }

  template <typename Use>
  static __device__ void ForEachFour(const uint8_t* row, int64_t cols,
                                     int64_t i, Use use) {
    constexpr int size = FloatBytes(type);
    float values[8];
    if (8 * i + 8 <= cols) {
      uint32_t words[2 * size];
      Words::Load(row + 8 * i * size, words);
      WidenWords<type>(words, values);
    } else {
      COLDSTREAM_UNROLL
      for (int j = 0; j < 8; ++j) {
        const int64_t at = 8 * i + j;
        values[j] = at < cols ? LoadFloat<type>(row + at * size) : 0.0f;
      }
    }
    use(8 * i, {values[0], values[1], values[2], values[3]});
    use(8 * i + 4, {values[4], values[5], values[6], values[7]});
  }
};

template <typename Block, typename Visitor>
auto VisitBlockRows(const TensorView& weight, Visitor visitor) {
  constexpr int step = NaturalStep(Block::kBytes);
  if constexpr (step >= 4) {
    if (reinterpret_cast<uintptr_t>(weight.data) % step == 0)
      return visitor
          .template operator()<BlockRows<Block, AlignedWords<step>>>();
  }
  return visitor.template operator()<BlockRows<Block, AnyWords>>();
}

template <DType type, typename Visitor>
auto VisitFloatRows(const TensorView& weight, Visitor visitor) {
  if (reinterpret_cast<uintptr_t>(weight.data) % 16 == 0 &&
      weight.row_bytes() % 16 == 0)
    return visitor.template operator()<FloatRows<type, AlignedWords<16>>>();
  return visitor.template operator()<FloatRows<type, AnyWords>>();
}

template <typename Visitor>
auto VisitRows(const TensorView& weight, Visitor visitor) {
  switch (weight.type) {
    case DType::kF32:
      return VisitFloatRows<DType::kF32>(weight, visitor);
    case DType::kF16:
      return VisitFloatRows<DType::kF16>(weight, visitor);
    case DType::kBF16:
      return VisitFloatRows<DType::kBF16>(weight, visitor);
    case DType::kQ8_0:
      return VisitBlockRows<Q8_0Block>(weight, visitor);
    case DType::kQ4_0:
      return VisitBlockRows<Q4_0Block>(weight, visitor);
    case DType::kQ4_1:
      return VisitBlockRows<Q4_1Block>(weight, visitor);
    case DType::kQ5_0:
      return VisitBlockRows<Q5_0Block>(weight, visitor);
    case DType::kQ5_1:
      return VisitBlockRows<Q5_1Block>(weight, visitor);
    case DType::kIQ4_NL:
      return VisitBlockRows<IQ4_NLBlock>(weight, visitor);
    case DType::kMXFP4:
      return VisitBlockRows<MXFP4Block>(weight, visitor);
    case DType::kQ2_K:
      return VisitBlockRows<Q2_KBlock>(weight, visitor);
    case DType::kQ3_K:
      return VisitBlockRows<Q3_KBlock>(weight, visitor);
    case DType::kQ4_K:
      return VisitBlockRows<Q4_KBlock>(weight, visitor);
    case DType::kQ5_K:
      return VisitBlockRows<Q5_KBlock>(weight, visitor);
    case DType::kQ6_K:
      return VisitBlockRows<Q6_KBlock>(weight, visitor);
    case DType::kIQ4_XS:
      return VisitBlockRows<IQ4_XSBlock>(weight, visitor);
  }
  CheckFailed(__FILE__, __LINE__, "a type of the table");
}

}  // namespace coldstream::cuda
