// What a decoder asks of a device: the operations of a pass, each over all its
// tokens, in the order they are called.
//
// Two implementations: the CPU's over a row of the ops table (kernels/ops.h),
// done when the call returns; CUDA's, which queues kernels on one stream. Data
// pointers are addresses of the device unless called host. A pass:
//
//   ops->BeginPass(tokens);               // host arrays; stay until Finish
//   ops->CopyIn(x, rows_of_embedding, n);
//   ... Norm, SetInput, Matmul, Attend, ...
//   ops->CopyOut(host_x, x, n);           // where the host goes on with it
//   ops->WaitForCopies();
//   ... and CopyIn again ...
//   ops->CopyOut(host_logits, logits, n);
//   ops->Finish();                        // now host_logits may be read
//   ops->first_not_finite();
//
// Promise: a result does not depend on which of the memories a weight came
// from, on the slot it lies in, or on when it came. What it may depend on
// beyond that (batch mates) each implementation says.
//
// Shapes are [outer, ..., inner], row-major floats unless said otherwise.
// Errors: Internal (the device failed). Thread-safety: one call at a time.
#ifndef COLDSTREAM_KERNELS_PASS_OPS_H_
#define COLDSTREAM_KERNELS_PASS_OPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/device.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/tensor_view.h"
#include "kernels/best_logits.h"
#include "kernels/ops.h"

namespace coldstream {

// Where one layer's keys and values lie. Block b is at base + b * block_bytes:
// tiles of keys [kv_heads] (kernels/kv_type.h), and values_offset bytes further
// of values.
struct KvLayer {
  std::byte* base = nullptr;
  uint64_t block_bytes = 0;
  uint64_t values_offset = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  KvType type = KvType::kF16;

  std::byte* keys(int block) const {
    return base + static_cast<uint64_t>(block) * block_bytes;
  }
  std::byte* values(int block) const { return keys(block) + values_offset; }
};

// The tokens of a pass, all arrays on the host. Tokens of a sequence are
// neighbours. T tokens, S sequences.
struct PassTokens {
  std::span<const int64_t> positions;  // [T]
  std::span<const int32_t> sequence;   // [T] index into block_begin
  // Blocks of sequence s: blocks[block_begin[s] .. block_begin[s + 1]), block
  // i of them for positions [64 i, 64 i + 64).
  std::span<const int32_t> block_begin;  // [S + 1]
  std::span<const int32_t> blocks;
  std::span<const float> rope;          // [T, rot_dim / 2, 2] cosine, sine
  std::span<const int32_t> logit_rows;  // tokens that want logits, ascending
};

// The most that one pass may hold: sizes of the buffers an implementation
// takes at Create.
struct PassLimits {
  int64_t tokens = 0;
  int64_t logit_rows = 0;
  int64_t input_width = 0;  // widest k of a product
  int64_t output_rows = 0;  // most rows of one weight view
  int64_t rot_dim = 0;
  int64_t blocks = 0;     // KV blocks of all sequences
  int64_t heads = 0;      // most of any layer
  int64_t key_dim = 0;    // of a head, widest of any layer
  int64_t value_dim = 0;  // the same
  int64_t vocab = 0;      // most logits of a row of CopyOutBest
};

class PassOps {
 public:
  virtual ~PassOps() = default;

  virtual Status BeginPass(const PassTokens& tokens) = 0;

  // out[i] = host[i]. Host memory must stay until WaitForCopies or Finish.
  virtual Status CopyIn(float* out, const float* host, int64_t n) = 0;
  virtual Status CopyOut(float* host, const float* x, int64_t n) = 0;
  // The k best of each row's first n logits, the row's only part that crosses
  // to the host. logits: [rows, stride]; host: [rows, k], best first, in the
  // order of kernels/best_logits.h, there after Finish. k is 1 to kMostChoices;
  // rows in all calls of a pass at most the limits' logit_rows.
  virtual Status CopyOutBest(LogitChoice* host, const float* logits,
                             int64_t rows, int64_t stride, int64_t n,
                             int64_t k) = 0;
  // Waits, in the middle of a pass, until the copies called so far are done:
  // what CopyOut brought may be read, what CopyIn took may change.
  virtual Status WaitForCopies() = 0;

  // One row of weights of any type as floats.
  virtual Status Dequantize(const TensorView& row, float* out) = 0;

  // Each of [rows, n] by its norm; weight: [n]. In place allowed.
  virtual Status Norm(NormKind kind, const float* x, const float* weight,
                      float eps, int64_t rows, int64_t n, float* out) = 0;
  // The same for the rows of x ([T, n]) that want logits: out [logit_rows, n].
  virtual Status NormLogitRows(NormKind kind, const float* x,
                               const float* weight, float eps, int64_t n,
                               float* out) = 0;

  // The input of the products that follow: [rows, k]. Must stay as it is until
  // the last of them.
  virtual Status SetInput(const float* x, int64_t rows, int64_t k) = 0;
  // out[t, r] = weight[r] . input[t]; out: [rows of the input, out_stride].
  virtual Status Matmul(const TensorView& weight, float* out,
                        int64_t out_stride) = 0;

  // x[t, i] += bias[i]; x: [rows, n].
  virtual Status AddBias(const float* bias, int64_t rows, int64_t n,
                         float* x) = 0;
  virtual Status Add(const float* x, int64_t n, float* out) = 0;  // out += x
  virtual Status Scale(float factor, int64_t n, float* x) = 0;    // x *= factor
  // out = gate / (1 + exp(-gate)) * up. In place on either allowed.
  virtual Status SwiGlu(const float* gate, const float* up, int64_t n,
                        float* out) = 0;
  // Rotates x: [T, heads, head_dim] by each token's row of the pass's rope.
  virtual Status Rope(float* x, int64_t heads, int64_t head_dim,
                      RopePairing pairing) = 0;
  // k: [T, kv_heads, key_dim] and v: [T, kv_heads, value_dim] to the tokens'
  // positions, as the layer's type.
  virtual Status StoreKv(const float* k, const float* v,
                         const KvLayer& layer) = 0;
  // As AttentionArgs (kernels/ops.h), scale 1 / sqrt(key_dim); q: [T, heads,
  // key_dim], out: [T, heads, value_dim].
  virtual Status Attend(const float* q, const KvLayer& layer, float* out) = 0;

  // Remembers `tag` if any of x is an infinity or NaN and no lower tag was.
  virtual Status CheckFinite(const float* x, int64_t n, int tag) = 0;

  // Waits until everything of this pass is done.
  virtual Status Finish() = 0;
  // After Finish: the lowest tag of CheckFinite since BeginPass, or -1.
  virtual int first_not_finite() const = 0;

  // Bytes of device memory taken at Create.
  virtual uint64_t memory_bytes() const = 0;
};

// `ops` and `parallel` must outlive it. Errors: ResourceExhausted.
StatusOr<std::unique_ptr<PassOps>> CreateCpuPassOps(const Ops* ops,
                                                    Parallel* parallel,
                                                    const PassLimits& limits);
uint64_t CpuPassOpsBytes(const PassLimits& limits);

// Kernels on `stream` of `device`, which must outlive it. Errors: Unimplemented
// (built without CUDA, or what CheckCudaPassLimits refuses), ResourceExhausted.
StatusOr<std::unique_ptr<PassOps>> CreateCudaPassOps(Device* device,
                                                     Stream* stream,
                                                     const PassLimits& limits);
uint64_t CudaPassOpsBytes(const PassLimits& limits);      // on the device
uint64_t CudaPassOpsHostBytes(const PassLimits& limits);  // page-locked
// Errors: Unimplemented (heads wider than cuda::kMostHeadDim).
Status CheckCudaPassLimits(const PassLimits& limits);

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_PASS_OPS_H_
