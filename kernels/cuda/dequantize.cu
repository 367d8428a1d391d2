// A thread decodes one part of a row (kernels/cuda/row_values.cuh).

#include <cstdint>

#include "base/check.h"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/dequantize.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/row_values.cuh"

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

// Where four values from `first` on go. Whole vectors unless rows have odd
// lengths.
__device__ void StoreFour(const float (&values)[4], int64_t first, int64_t cols,
                          float* row) {
  if (cols % 4 == 0) {
    if (first < cols) {
      *reinterpret_cast<float4*>(row + first) =
          make_float4(values[0], values[1], values[2], values[3]);
    }
    return;
  }
  for (int i = 0; i < 4; ++i)
    if (first + i < cols) row[first + i] = values[i];
}

template <typename Rows>
__global__ void DequantizeKernel(DequantizeParams p) {
  const int64_t part = int64_t{blockIdx.x} * kAlong + threadIdx.x;
  if (part >= Rows::Parts(p.cols)) return;
  const int64_t step = int64_t{gridDim.y} * kRows;
  for (int64_t row = int64_t{blockIdx.y} * kRows + threadIdx.y; row < p.rows;
       row += step) {
    Rows::ForEachFour(p.weights + static_cast<uint64_t>(row) * p.row_bytes,
                      p.cols, part,
                      [&](int64_t first, const float(&values)[4]) {
                        StoreFour(values, first, p.cols, p.out + row * p.cols);
                      });
  }
}

}  // namespace

Status Dequantize(const TensorView& weight, float* out, Stream* stream) {
  CHECK(weight.cols % 4 != 0 || reinterpret_cast<uintptr_t>(out) % 16 == 0);
  if (weight.rows == 0 || weight.cols == 0) return absl::OkStatus();
  const DequantizeParams params = {
      .weights = reinterpret_cast<const uint8_t*>(weight.data),
      .row_bytes = weight.row_bytes(),
      .rows = weight.rows,
      .cols = weight.cols,
      .out = out};
  const unsigned height = GridRows((weight.rows + kRows - 1) / kRows);
  return VisitRows(weight, [&]<typename Rows>() {
    return Launch<DequantizeKernel<Rows>>(
        dim3(Blocks(Rows::Parts(weight.cols), kAlong), height),
        dim3(kAlong, kRows), 0, stream, params);
  });
}

}  // namespace coldstream::cuda
