// Matrix products over all threads.
//
//   Activations x(ops, parallel);               // buffers allocated once
//   x.Set(floats, tokens, k);                   // quantised lazily, per format
//   Matmul(ops, parallel, wq, x, q, q_stride);  // wq, wk, wv share one Set
#ifndef COLDSTREAM_KERNELS_MATMUL_H_
#define COLDSTREAM_KERNELS_MATMUL_H_

#include <array>
#include <cstdint>

#include "base/host_memory.h"
#include "base/parallel.h"
#include "base/tensor_view.h"
#include "kernels/ops.h"

namespace coldstream {

// The input of one or more products: [tokens, k] floats, and their 8-bit forms
// made when a weight type first asks for them. Floats are used where they lie.
// Lifetime: the floats given to Set until the last Matmul.
class Activations {
 public:
  // Room for max_tokens rows of max_k values in every format.
  // Errors: ResourceExhausted.
  static StatusOr<Activations> Create(int64_t max_tokens, int64_t max_k);

  // Bytes Create takes.
  static uint64_t BytesFor(int64_t max_tokens, int64_t max_k);

  // x: [tokens, stride] floats, k of each row used; forgets what was made.
  void Set(const float* x, int64_t tokens, int64_t k, int64_t stride);

  int64_t tokens() const { return tokens_; }
  int64_t k() const { return k_; }

  struct View {
    const std::byte* data;
    uint64_t stride;  // bytes from one token to the next
  };
  // The rows in `format`, quantised now if this is the first use since Set.
  View Get(ActivationFormat format, const Ops& ops, Parallel& parallel);

 private:
  HostMemory memory_;
  std::array<std::byte*, kActivationFormats> rows_ = {};
  std::array<bool, kActivationFormats> made_ = {};
  const float* x_ = nullptr;
  int64_t tokens_ = 0;
  int64_t k_ = 0;
  int64_t stride_ = 0;
  int64_t max_tokens_ = 0;
  int64_t max_k_ = 0;
};

// out[t, r] for all tokens of x and rows of weight; out: [tokens, out_stride].
// weight.cols must equal x.k().
void Matmul(const Ops& ops, Parallel& parallel, const TensorView& weight,
            Activations& x, float* out, int64_t out_stride);

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_MATMUL_H_
