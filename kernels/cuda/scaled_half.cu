#include "base/check.h"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/row_values.cuh"
#include "kernels/cuda/scaled_half.h"

namespace coldstream::cuda {
namespace {

constexpr unsigned kWarps = 4;
constexpr unsigned kThreads = 32 * kWarps;

struct ScaledHalfParams {
  const uint8_t* rows;
  uint64_t row_bytes;
  int64_t cols;
  uint16_t* out;
  int64_t out_stride;
  int32_t* exponents;
};

// The largest of all threads' numbers.
__device__ uint32_t LargestOfBlock(uint32_t value) {
  COLDSTREAM_SHARED(uint32_t, of_warp, kWarps);
  COLDSTREAM_UNROLL
  for (int distance = 16; distance > 0; distance /= 2)
    value = max(value, __shfl_xor_sync(0xffffffffu, value, distance));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  COLDSTREAM_UNROLL
  for (unsigned w = 1; w < kWarps; ++w) value = max(value, of_warp[w]);
  return value;
}

// Of a row whose largest magnitude has these bits: brings it to [2^14, 2^15).
// Not below -126, so that 2^-exponent is a normal float.
__device__ int ExponentFor(uint32_t largest_bits) {
  const int biased = static_cast<int>(largest_bits >> 23);
  if (biased == 255) return 0;
  return max(biased - 127 - 14, -126);
}

__device__ uint32_t PackHalves(float low, float high) {
  return __half_as_ushort(__float2half_rn(low)) |
         static_cast<uint32_t>(__half_as_ushort(__float2half_rn(high))) << 16;
}

// A block of threads takes a row, and reads it twice.
template <typename Rows>
__global__ void __launch_bounds__(kThreads)
    ToScaledHalfKernel(ScaledHalfParams p) {
  const int64_t row = blockIdx.x;
  const uint8_t* from = p.rows + static_cast<uint64_t>(row) * p.row_bytes;
  uint32_t largest = 0;
  for (int64_t i = threadIdx.x; i < Rows::Parts(p.cols); i += kThreads) {
    Rows::ForEachFour(from, p.cols, i, [&](int64_t, const float(&values)[4]) {
      COLDSTREAM_UNROLL
      for (int j = 0; j < 4; ++j)
        largest = max(largest, __float_as_uint(values[j]) & 0x7fffffffu);
    });
  }
  const int exponent = ExponentFor(LargestOfBlock(largest));
  const float factor =
      __uint_as_float(static_cast<uint32_t>(127 - exponent) << 23);
  uint16_t* to = p.out + row * p.out_stride;
  for (int64_t i = threadIdx.x; i < Rows::Parts(p.cols); i += kThreads) {
    Rows::ForEachFour(
        from, p.cols, i, [&](int64_t first, const float(&values)[4]) {
          *reinterpret_cast<uint2*>(to + first) =
              make_uint2(PackHalves(values[0] * factor, values[1] * factor),
                         PackHalves(values[2] * factor, values[3] * factor));
        });
  }
  if (threadIdx.x == 0) p.exponents[row] = exponent;
}

__global__ void UndoScalesKernel(const int32_t* row_exponents,
                                 const int32_t* token_exponents, int64_t rows,
                                 int64_t tokens, float* products,
                                 int64_t stride) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  const int row_exponent = row_exponents[row];
  for (int64_t t = blockIdx.y; t < tokens; t += gridDim.y) {
    float& product = products[t * stride + row];
    product = ldexpf(product, row_exponent + token_exponents[t]);
  }
}

}  // namespace

Status ToScaledHalf(const TensorView& rows, uint16_t* out, int32_t* exponents,
                    Stream* stream) {
  CHECK(reinterpret_cast<uintptr_t>(out) % 16 == 0);
  if (rows.rows == 0) return absl::OkStatus();
  const ScaledHalfParams params = {
      .rows = reinterpret_cast<const uint8_t*>(rows.data),
      .row_bytes = rows.row_bytes(),
      .cols = rows.cols,
      .out = out,
      .out_stride = ScaledHalfStride(rows.cols),
      .exponents = exponents};
  return VisitRows(rows, [&]<typename Rows>() {
    return Launch<ToScaledHalfKernel<Rows>>(Blocks(rows.rows, 1), kThreads, 0,
                                            stream, params);
  });
}

Status UndoScales(const int32_t* row_exponents, const int32_t* token_exponents,
                  int64_t rows, int64_t tokens, float* products, int64_t stride,
                  Stream* stream) {
  if (rows == 0 || tokens == 0) return absl::OkStatus();
  return Launch<UndoScalesKernel>(
      dim3(Blocks(rows, kThreads), GridRows(tokens)), kThreads, 0, stream,
      row_exponents, token_exponents, rows, tokens, products, stride);
}

}  // namespace coldstream::cuda
