// A warp quantises one block: lane i of it values [n i, n i + n), one each of
// kQ8_32, eight each of kQ8_256. The largest magnitude and the sums are whole
// numbers, so that their order does not matter.

#include "base/check.h"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/quantize.h"
#include "kernels/cuda/quantize_block.cuh"

namespace coldstream::cuda {
namespace {

constexpr unsigned kWarps = 4;  // of a block of threads

struct QuantizeParams {
  const float* x;
  int64_t rows;
  int64_t k;
  uint8_t* out;
  uint64_t row_bytes;
};

// Sum over the groups of `lanes` neighbours.
__device__ int SumOfLanes(int value, int lanes) {
  for (int distance = 1; distance < lanes; distance *= 2)
    value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

// Reads a lane's n values, returns its numbers' sum and stores them to q.
template <int n>
__device__ int QuantizeLane(const float* x, int8_t* q, Scaling* scaling) {
  float values[n];
  uint32_t largest = 0;
  COLDSTREAM_UNROLL
  for (int i = 0; i < n; ++i) {
    values[i] = x[i];
    largest = max(largest, MagnitudeBits(values[i]));
  }
  *scaling = ScalingOf(LargestOfWarp(largest));
  int sum = 0;
  COLDSTREAM_UNROLL
  for (int i = 0; i < n; ++i) {
    const int number = Quantized(values[i], *scaling);
    q[i] = static_cast<int8_t>(number);
    sum += number;
  }
  return sum;
}

// Calls quantize(x of the block, output row, block) for each block of the
// grid's warps.
template <int block_values, typename QuantizeBlock>
__device__ void ForEachBlock(const QuantizeParams& p, QuantizeBlock quantize) {
  const int64_t block = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (block >= p.k / block_values) return;
  for (int64_t row = blockIdx.y; row < p.rows; row += gridDim.y) {
    quantize(p.x + row * p.k + block * block_values,
             p.out + static_cast<uint64_t>(row) * p.row_bytes, block);
  }
}

__global__ void QuantizeQ8_32Kernel(QuantizeParams p) {
  ForEachBlock<32>(p, [&](const float* x, uint8_t* row, int64_t block) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    Scaling scaling;
    int8_t* q = reinterpret_cast<int8_t*>(row) + 32 * block;
    const int sum =
        SumOfLanes(QuantizeLane<1>(x + lane, q + lane, &scaling), 32);
    if (lane != 0) return;
    reinterpret_cast<float*>(row + p.k)[block] = scaling.scale;
    reinterpret_cast<int32_t*>(row + p.k + p.k / 8)[block] = sum;
    reinterpret_cast<float*>(row + p.k + p.k / 4)[block] =
        scaling.scale * static_cast<float>(sum);
  });
}

__global__ void QuantizeQ8_256Kernel(QuantizeParams p) {
  ForEachBlock<256>(p, [&](const float* x, uint8_t* row, int64_t block) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    Scaling scaling;
    int8_t* q = reinterpret_cast<int8_t*>(row) + 256 * block;
    const int sum = QuantizeLane<8>(x + 8 * lane, q + 8 * lane, &scaling);
    const int sum16 = SumOfLanes(sum, 2);
    const int sum32 = SumOfLanes(sum, 4);
    int16_t* sums16 = reinterpret_cast<int16_t*>(row + p.k);
    int16_t* sums32 = reinterpret_cast<int16_t*>(row + p.k + p.k / 8);
    if (lane % 2 == 0)
      sums16[16 * block + lane / 2] = static_cast<int16_t>(sum16);
    if (lane % 4 == 0)
      sums32[8 * block + lane / 4] = static_cast<int16_t>(sum32);
    if (lane == 0) {
      reinterpret_cast<float*>(row + p.k + p.k / 8 + p.k / 16)[block] =
          scaling.scale;
    }
  });
}

}  // namespace

Status Quantize(ActivationFormat format, const float* x, int64_t rows,
                int64_t k, std::byte* out, Stream* stream) {
  const int64_t block = format == ActivationFormat::kQ8_32 ? 32 : 256;
  CHECK(format != ActivationFormat::kF32 && k % block == 0);
  if (rows == 0 || k == 0) return absl::OkStatus();
  const QuantizeParams params = {.x = x,
                                 .rows = rows,
                                 .k = k,
                                 .out = reinterpret_cast<uint8_t*>(out),
                                 .row_bytes = ActivationRowBytes(format, k)};
  const dim3 grid(Blocks(k / block, kWarps), GridRows(rows));
  if (format == ActivationFormat::kQ8_32)
    return Launch<QuantizeQ8_32Kernel>(grid, 32 * kWarps, 0, stream, params);
  return Launch<QuantizeQ8_256Kernel>(grid, 32 * kWarps, 0, stream, params);
}

}  // namespace coldstream::cuda
