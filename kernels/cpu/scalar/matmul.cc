// The product that specifies the others: exact weights times the (quantised)
// activations, summed in double. A row is decoded 256 values at a time, once
// for all tokens of the call; each token's sums run in eight lanes by position,
// whatever the number of tokens.

#include <array>
#include <cstring>

#include "kernels/activations.h"
#include "kernels/cpu/scalar/dequantize.h"
#include "kernels/cpu/scalar/register.h"

namespace coldstream {
namespace {

constexpr int64_t kChunk = 256;
constexpr int64_t kLanes = 8;
constexpr int64_t kTokenTile = 16;

using Lanes = std::array<double, kLanes>;

double Total(const Lanes& lanes) {
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

// sums += w * x over n values; x may be floats or 8-bit numbers at any address.
template <typename T>
void AddProducts(const float* w, const std::byte* x, int64_t n, Lanes* sums) {
  std::array<T, kChunk> values;
  std::memcpy(values.data(), x, static_cast<size_t>(n) * sizeof(T));
  for (int64_t i = 0; i < n; ++i) {
    (*sums)[static_cast<size_t>(i % kLanes)] +=
        double{w[i]} * static_cast<double>(values[static_cast<size_t>(i)]);
  }
}

// Adds values [begin, begin + n) of one row to a token's sums.
template <ActivationFormat format>
void AddChunk(const float* w, const std::byte* x, int64_t k, int64_t begin,
              int64_t n, Lanes* sums) {
  if constexpr (format == ActivationFormat::kF32) {
    AddProducts<float>(w, x + 4 * begin, n, sums);
  } else {
    constexpr int64_t kBlock =
        format == ActivationFormat::kQ8_32 ? int64_t{32} : int64_t{256};
    const float* scale = format == ActivationFormat::kQ8_32
                             ? ViewQ8_32(x, k).scale
                             : ViewQ8_256(x, k).scale;
    for (int64_t i = 0; i < n; i += kBlock) {
      Lanes block = {};
      AddProducts<int8_t>(w + i, x + begin + i, kBlock, &block);
      const double d = scale[(begin + i) / kBlock];
      for (size_t lane = 0; lane < block.size(); ++lane)
        (*sums)[lane] += block[lane] * d;
    }
  }
}

DequantizeFn DequantizeFor(DType type) {
  const DequantizeFn dequantize = ScalarDequantize32(type);
  return dequantize != nullptr ? dequantize : ScalarDequantize256(type);
}

// Rows [row_begin, row_end) for tokens [first, first + count).
template <ActivationFormat format>
void TokenTile(const MatmulArgs& args, int64_t row_begin, int64_t row_end,
               int64_t first, int64_t count) {
  const DequantizeFn dequantize = DequantizeFor(args.weight.type);
  const int64_t k = args.weight.cols;
  std::array<float, kChunk> w;
  for (int64_t row = row_begin; row < row_end; ++row) {
    std::array<Lanes, kTokenTile> sums = {};
    const std::byte* data = args.weight.row(row);
    for (int64_t i = 0; i < k; i += kChunk) {
      const int64_t n = k - i < kChunk ? k - i : kChunk;
      dequantize(data + RowBytes(args.weight.type, static_cast<uint64_t>(i)), n,
                 w.data());
      for (int64_t t = 0; t < count; ++t) {
        const std::byte* x =
            args.activations +
            static_cast<uint64_t>(first + t) * args.activation_stride;
        AddChunk<format>(w.data(), x, k, i, n, &sums[static_cast<size_t>(t)]);
      }
    }
    for (int64_t t = 0; t < count; ++t) {
      args.out[(first + t) * args.out_stride + row] =
          static_cast<float>(Total(sums[static_cast<size_t>(t)]));
    }
  }
}

template <ActivationFormat format>
void Rows(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  for (int64_t t = 0; t < args.tokens; t += kTokenTile) {
    const int64_t left = args.tokens - t;
    TokenTile<format>(args, row_begin, row_end, t,
                      left < kTokenTile ? left : kTokenTile);
  }
}

MatmulKernel KernelFor(const DTypeInfo& info) {
  const DequantizeFn dequantize = DequantizeFor(info.type);
  switch (info.block_elements) {
    case 1:
      return {ActivationFormat::kF32, Rows<ActivationFormat::kF32>, dequantize};
    case 32:
      return {ActivationFormat::kQ8_32, Rows<ActivationFormat::kQ8_32>,
              dequantize};
    default:
      return {ActivationFormat::kQ8_256, Rows<ActivationFormat::kQ8_256>,
              dequantize};
  }
}

}  // namespace

void RegisterScalarMatmul(Ops* ops) {
  for (const DTypeInfo& info : AllDTypes())
    ops->matmul[static_cast<size_t>(info.type)] = KernelFor(info);
}

}  // namespace coldstream
