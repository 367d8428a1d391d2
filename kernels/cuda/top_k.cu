#include <utility>

#include "base/check.h"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/logit_key.cuh"
#include "kernels/cuda/top_k.h"

namespace coldstream::cuda {
namespace {

constexpr int kThreads = 512;
// Keys that a block sorts, 32 KiB; each round leaves at most kMostTopK of them.
constexpr int64_t kChunk = 4096;
static_assert(kMostTopK <= kChunk / 2, "a round must leave fewer than it took");

int64_t Chunks(int64_t n) { return (n + kChunk - 1) / kChunk; }

// Sorts keys[0, n), n a power of two, largest first: Batcher's bitonic sort
// (1968). Begins and ends with a barrier.
__device__ void SortDescending(LogitKey* keys, int n) {
  for (int size = 2; size <= n; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int pair = static_cast<int>(threadIdx.x); pair < n / 2;
           pair += kThreads) {
        const int low = 2 * pair - (pair & (step - 1));
        const LogitKey a = keys[low];
        const LogitKey b = keys[low + step];
        const bool descends = (low & size) == 0;
        if ((a < b) == descends) {
          keys[low] = b;
          keys[low + step] = a;
        }
      }
    }
  }
  __syncthreads();
}

// What a block has: chunk blockIdx.x of row blockIdx.y.
struct Chunk {
  int64_t begin;  // in its row
  int count;
  int sorted;  // count rounded up to a power of two
};

__device__ Chunk ChunkOf(int64_t n) {
  Chunk chunk;
  chunk.begin = blockIdx.x * kChunk;
  chunk.count = static_cast<int>(min(kChunk, n - chunk.begin));
  chunk.sorted = 2;
  while (chunk.sorted < chunk.count) chunk.sorted *= 2;
  return chunk;
}

// Sorts the chunk and writes its best k behind those of the chunks before it.
__device__ void KeepBest(LogitKey* keys, const Chunk& chunk, int64_t k,
                         LogitKey* out) {
  SortDescending(keys, chunk.sorted);
  LogitKey* const mine =
      out + (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * k;
  for (int64_t i = threadIdx.x; i < k; i += kThreads)
    mine[i] = i < chunk.sorted ? keys[i] : kNoChoice;
}

__global__ void ResetKernel(int64_t rows, int32_t* first_bad) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row < rows) first_bad[row] = kNoBadLogit;
}

__global__ void __launch_bounds__(kThreads)
    BestOfLogitsKernel(const float* logits, int64_t stride, int64_t n,
                       int64_t k, LogitKey* out, int32_t* first_bad) {
  COLDSTREAM_SHARED(LogitKey, keys, kChunk);
  const Chunk chunk = ChunkOf(n);
  const float* const from = logits + blockIdx.y * stride + chunk.begin;
  int32_t bad = kNoBadLogit;
  for (int i = static_cast<int>(threadIdx.x); i < chunk.sorted; i += kThreads)
    keys[i] =
        i < chunk.count ? KeyOf(from[i], chunk.begin + i, &bad) : kNoChoice;
  if (bad != kNoBadLogit) atomicMin(first_bad + blockIdx.y, bad);
  KeepBest(keys, chunk, k, out);
}

__global__ void __launch_bounds__(kThreads)
    BestOfKeysKernel(const LogitKey* from, int64_t n, int64_t k,
                     LogitKey* out) {
  COLDSTREAM_SHARED(LogitKey, keys, kChunk);
  const Chunk chunk = ChunkOf(n);
  for (int i = static_cast<int>(threadIdx.x); i < chunk.sorted; i += kThreads)
    keys[i] =
        i < chunk.count ? from[blockIdx.y * n + chunk.begin + i] : kNoChoice;
  KeepBest(keys, chunk, k, out);
}

}  // namespace

int64_t TopKScratch(int64_t rows, int64_t n, int64_t k) {
  if (Chunks(n) <= 1) return 0;
  const int64_t first = Chunks(n) * k;
  return rows * (first + (Chunks(first) > 1 ? Chunks(first) * k : 0));
}

Status TopK(const float* logits, int64_t stride, int64_t rows, int64_t n,
            int64_t k, LogitKey* scratch, LogitKey* best, int32_t* first_bad,
            Stream* stream) {
  CHECK(k >= 1 && k <= kMostTopK && rows <= 65535);
  if (rows == 0) return absl::OkStatus();
  RETURN_IF_ERROR(Launch<ResetKernel>(Blocks(rows, kThreads), kThreads, 0,
                                      stream, rows, first_bad));
  const unsigned height = static_cast<unsigned>(rows);
  int64_t chunks = n == 0 ? 1 : Chunks(n);
  LogitKey* to = scratch;
  LogitKey* other = scratch + rows * chunks * k;
  RETURN_IF_ERROR(Launch<BestOfLogitsKernel>(
      dim3(static_cast<unsigned>(chunks), height), kThreads, 0, stream, logits,
      stride, n, k, chunks == 1 ? best : to, first_bad));
  while (chunks > 1) {
    const int64_t left = chunks * k;
    chunks = Chunks(left);
    RETURN_IF_ERROR(Launch<BestOfKeysKernel>(
        dim3(static_cast<unsigned>(chunks), height), kThreads, 0, stream, to,
        left, k, chunks == 1 ? best : other));
    std::swap(to, other);
  }
  return absl::OkStatus();
}

}  // namespace coldstream::cuda
