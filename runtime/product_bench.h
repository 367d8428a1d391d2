// Times matrix products as a pass makes them: over more memory than the
// last-level cache holds, in pieces the size of a weight unit, on zeroed
// weights (the kernels take the same time whatever the values).
#ifndef COLDSTREAM_RUNTIME_PRODUCT_BENCH_H_
#define COLDSTREAM_RUNTIME_PRODUCT_BENCH_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "base/dtype.h"
#include "base/host_memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/matmul.h"
#include "kernels/ops.h"

namespace coldstream {

// Seconds of the median of five runs, after one that does not count.
template <typename Body>
double MedianSeconds(const Body& body) {
  using Clock = std::chrono::steady_clock;
  body();
  std::array<double, 5> times = {};
  for (double& seconds : times) {
    const Clock::time_point begin = Clock::now();
    body();
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::nth_element(times.begin(), times.begin() + 2, times.end());
  return times[2];
}

class ProductBench {
 public:
  // Takes about 100 MiB. Both must outlive the bench. Errors:
  // ResourceExhausted.
  static StatusOr<ProductBench> Create(const Ops* ops, Parallel* parallel,
                                       int64_t max_tokens);

  // Median seconds for a byte of weights, multiplied with `tokens` tokens.
  double SecondsPerByte(DType type, int64_t tokens);
  // The mean over at least `seconds`, pauses of the processor included.
  double MeanSecondsPerByte(DType type, int64_t tokens, double seconds);

 private:
  // One round of products; returns the bytes of weights it went through.
  uint64_t Multiply(DType type, int64_t tokens);

  const Ops* ops_ = nullptr;
  Parallel* parallel_ = nullptr;
  int64_t max_tokens_ = 0;
  HostMemory weights_;
  HostMemory floats_;  // [max_tokens, cols] in, then [max_tokens, rows] out
  Activations x_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_PRODUCT_BENCH_H_
