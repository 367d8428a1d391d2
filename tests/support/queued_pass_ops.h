// The CPU's operations, queued on a stream of a device of the tests: what runs,
// and the bits of it, are the CPU's; when it runs is the device's business.
#ifndef COLDSTREAM_TESTS_SUPPORT_QUEUED_PASS_OPS_H_
#define COLDSTREAM_TESTS_SUPPORT_QUEUED_PASS_OPS_H_

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/parallel.h"
#include "kernels/pass_ops.h"
#include "tests/simt/kernel_queue.h"

namespace coldstream {

class QueuedPassOps : public PassOps {
 public:
  static StatusOr<std::unique_ptr<PassOps>> Create(Device*, Stream* stream,
                                                   const PassLimits& limits) {
    ASSIGN_OR_RETURN(const Ops* ops, OpsFor(Isa::kScalar));
    return CreateWith(ops, stream, limits);
  }
  static StatusOr<std::unique_ptr<PassOps>> CreateWith(
      const Ops* ops, Stream* stream, const PassLimits& limits) {
    auto queued = std::make_unique<QueuedPassOps>(stream);
    RETURN_IF_ERROR(queued->Open(ops, limits));
    return queued;
  }
  explicit QueuedPassOps(Stream* stream) : stream_(stream) {}
  // Once, before anything else.
  Status Open(const Ops* ops, const PassLimits& limits) {
    ASSIGN_OR_RETURN(ops_, CreateCpuPassOps(ops, &parallel_, limits));
    choices_.resize(static_cast<size_t>(limits.logit_rows * kMostChoices));
    return absl::OkStatus();
  }

  Status BeginPass(const PassTokens& tokens) override {
    return Queue([=](PassOps& ops) { return ops.BeginPass(tokens); });
  }
  Status CopyIn(float* out, const float* host, int64_t n) override {
    return stream_->CopyToDevice(reinterpret_cast<std::byte*>(out),
                                 reinterpret_cast<const std::byte*>(host),
                                 static_cast<size_t>(n) * sizeof(float));
  }
  Status CopyOut(float* host, const float* x, int64_t n) override {
    return stream_->CopyToHost(reinterpret_cast<std::byte*>(host),
                               reinterpret_cast<const std::byte*>(x),
                               static_cast<size_t>(n) * sizeof(float));
  }
  Status CopyOutBest(LogitChoice* host, const float* logits, int64_t rows,
                     int64_t stride, int64_t n, int64_t k) override {
    LogitChoice* const found = choices_.data();
    RETURN_IF_ERROR(Queue([=](PassOps& ops) {
      return ops.CopyOutBest(found, logits, rows, stride, n, k);
    }));
    return stream_->CopyToHost(
        reinterpret_cast<std::byte*>(host),
        reinterpret_cast<const std::byte*>(found),
        static_cast<size_t>(rows * k) * sizeof(LogitChoice));
  }
  Status WaitForCopies() override { return stream_->Synchronize(); }
  Status Dequantize(const TensorView& row, float* out) override {
    return Queue([=](PassOps& ops) { return ops.Dequantize(row, out); });
  }
  Status Norm(NormKind kind, const float* x, const float* weight, float eps,
              int64_t rows, int64_t n, float* out) override {
    return Queue([=](PassOps& ops) {
      return ops.Norm(kind, x, weight, eps, rows, n, out);
    });
  }
  Status NormLogitRows(NormKind kind, const float* x, const float* weight,
                       float eps, int64_t n, float* out) override {
    return Queue([=](PassOps& ops) {
      return ops.NormLogitRows(kind, x, weight, eps, n, out);
    });
  }
  Status SetInput(const float* x, int64_t rows, int64_t k) override {
    return Queue([=](PassOps& ops) { return ops.SetInput(x, rows, k); });
  }
  Status Matmul(const TensorView& weight, float* out,
                int64_t out_stride) override {
    return Queue(
        [=](PassOps& ops) { return ops.Matmul(weight, out, out_stride); });
  }
  Status AddBias(const float* bias, int64_t rows, int64_t n,
                 float* x) override {
    return Queue([=](PassOps& ops) { return ops.AddBias(bias, rows, n, x); });
  }
  Status Add(const float* x, int64_t n, float* out) override {
    return Queue([=](PassOps& ops) { return ops.Add(x, n, out); });
  }
  Status Scale(float factor, int64_t n, float* x) override {
    return Queue([=](PassOps& ops) { return ops.Scale(factor, n, x); });
  }
  Status SwiGlu(const float* gate, const float* up, int64_t n,
                float* out) override {
    return Queue([=](PassOps& ops) { return ops.SwiGlu(gate, up, n, out); });
  }
  Status Rope(float* x, int64_t heads, int64_t head_dim,
              RopePairing pairing) override {
    return Queue(
        [=](PassOps& ops) { return ops.Rope(x, heads, head_dim, pairing); });
  }
  Status StoreKv(const float* k, const float* v,
                 const KvLayer& layer) override {
    return Queue([=](PassOps& ops) { return ops.StoreKv(k, v, layer); });
  }
  Status Attend(const float* q, const KvLayer& layer, float* out) override {
    return Queue([=](PassOps& ops) { return ops.Attend(q, layer, out); });
  }
  Status CheckFinite(const float* x, int64_t n, int tag) override {
    return Queue([=](PassOps& ops) { return ops.CheckFinite(x, n, tag); });
  }
  Status Finish() override { return stream_->Synchronize(); }
  int first_not_finite() const override { return ops_->first_not_finite(); }
  uint64_t memory_bytes() const override { return ops_->memory_bytes(); }

 private:
  template <typename Work>
  Status Queue(const Work& work) {
    auto* queue = static_cast<simt::KernelQueue*>(stream_->native_handle());
    queue->Enqueue([this, work] { CHECK(work(*ops_).ok()); });
    return absl::OkStatus();
  }

  Stream* const stream_;
  Parallel parallel_{1};
  std::unique_ptr<PassOps> ops_;
  std::vector<LogitChoice> choices_;  // as if on the device
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_QUEUED_PASS_OPS_H_
