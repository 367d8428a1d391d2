// Runs the threads of a grid, block after block, each thread as a fiber.
//
// A thread that meets no barrier runs to its end on the fiber of the one before
// it, without a switch. At a barrier or a warp operation its fiber stays where
// it is, and others run; the last to arrive makes all of them ready again. The
// most recently released run first, so that a warp is worked through before the
// next one starts and few stacks are warm at a time.
//
// What is wrong in a kernel ends the process with kernel, block, thread and
// place: a barrier that a thread of the block can never reach (each waits for
// something), two different barriers at once, a warp operation whose lanes
// disagree about mask or place, a shuffle from a lane that takes no part.
// A thread that has returned is no longer waited for, as on hardware since
// Volta. Polling memory for another thread's write hangs: nothing else runs.
//
// Thread-safety: RunGrid may be called on several threads, each has its own
// pool of fibers; a launch runs on one. Stacks are kept until the thread ends.
#ifndef COLDSTREAM_TESTS_SIMT_BLOCK_H_
#define COLDSTREAM_TESTS_SIMT_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "tests/simt/vector_types.h"

// Of the thread that runs.
inline constinit thread_local uint3 threadIdx = {};
inline constinit thread_local uint3 blockIdx = {};
inline constinit thread_local dim3 blockDim = {};
inline constinit thread_local dim3 gridDim = {};
inline constexpr int warpSize = 32;

namespace coldstream::simt {

struct LaunchShape {
  std::string_view kernel;  // its name
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;  // dynamic
};

// Calls `thread` once for each thread of the grid, with the indices set.
void RunGrid(const LaunchShape& shape, absl::FunctionRef<void()> thread);

// The block's memory behind COLDSTREAM_SHARED: the same for all threads of a
// block, of exactly this size, new for each block and filled with 0xff (NaN,
// -1). `site` tells the arrays of a kernel apart.
void* SharedMemory(const void* site, size_t bytes);
template <typename T, size_t count>
T (&SharedArray(const void* site))
[count] {
  return *static_cast<T(*)[count]>(SharedMemory(site, count * sizeof(T)));
}
void* DynamicShared();

// Waits until all threads of the block have come to this barrier.
void BlockBarrier(const std::source_location& where);

// What the lanes of a warp do together.
enum class WarpOperation : uint8_t { kBarrier, kShuffle, kAny, kAll, kBallot };

// One lane's part in an operation of the lanes in `mask`. kShuffle: the value
// of lane `source`; the others count values that are not zero.
uint64_t WarpExchange(WarpOperation operation, uint32_t mask, uint64_t value,
                      int source, const std::source_location& where);

// The number of this thread in its warp.
int LaneIndex();

}  // namespace coldstream::simt

inline void __syncthreads(
    std::source_location where = std::source_location::current()) {
  coldstream::simt::BlockBarrier(where);
}

#endif  // COLDSTREAM_TESTS_SIMT_BLOCK_H_
