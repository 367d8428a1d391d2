// PassOps over kernels on one stream: every call queues its work and returns.
//
// Beyond what PassOps promises: with up to kSweepTokens tokens a pass, a
// token's results do not depend on its batch mates, bit for bit; beyond,
// products go through a GEMM (kernels/cuda/matmul.h), whose sums depend on the
// number of tokens and of rows, and on nothing else.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/pinned_memory.h"
#include "kernels/cuda/add.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_work.h"
#include "kernels/cuda/best_logits.h"
#include "kernels/cuda/check_finite.h"
#include "kernels/cuda/dequantize.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/kv_store.h"
#include "kernels/cuda/layer_norm.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/memory_cutter.h"
#include "kernels/cuda/pass_upload.h"
#include "kernels/cuda/rms_norm.h"
#include "kernels/cuda/rope.h"
#include "kernels/cuda/scale.h"
#include "kernels/cuda/swiglu.h"
#include "kernels/pass_ops.h"

namespace coldstream {
namespace {

cuda::MatmulLimits MatmulLimitsOf(const PassLimits& limits) {
  return {.tokens = std::max(limits.tokens, limits.logit_rows),
          .k = limits.input_width,
          .rows = limits.output_rows};
}

// The device memory of an instance.
struct Parts {
  cuda::DeviceBestLogits best;
  std::span<std::byte> upload = {};
  std::span<std::byte> matmul = {};
  std::span<std::byte> gemm = {};  // empty where none is needed
  float* partials = nullptr;       // of attention
  int32_t* lowest_tag = nullptr;
};

Parts Cut(const PassLimits& limits, cuda::MemoryCutter* cutter) {
  const auto take = [&](uint64_t bytes) {
    std::byte* part = cutter->Take<std::byte>(static_cast<int64_t>(bytes));
    return std::span<std::byte>(part, part == nullptr ? 0 : bytes);
  };
  const cuda::MatmulLimits matmul = MatmulLimitsOf(limits);
  Parts parts = {.best = cuda::DeviceBestLogits(limits.vocab, cutter)};
  parts.upload = take(cuda::PassUpload::BytesFor(limits));
  parts.matmul = take(cuda::DeviceMatmul::ScratchBytes(matmul));
  if (cuda::DeviceMatmul::NeedsGemm(matmul))
    parts.gemm = take(cuda::kGemmWorkspaceBytes);
  parts.partials =
      cutter->Take<float>(cuda::AttentionWork::MostPartials(limits) *
                          limits.heads * cuda::PartialFloats(limits.value_dim));
  parts.lowest_tag = cutter->Take<int32_t>(1);
  return parts;
}

class CudaPassOps final : public PassOps {
 public:
  // What Create makes, in the order in which it may go again.
  struct Owned {
    DeviceMemory memory;
    PinnedMemory result;  // the lowest tag, brought home by Finish
    std::unique_ptr<cuda::Gemm> gemm;
    std::unique_ptr<cuda::PassUpload> upload;
  };

  CudaPassOps(Stream* stream, const PassLimits& limits, const Parts& parts,
              Owned owned)
      : stream_(stream),
        limits_(limits),
        owned_(std::move(owned)),
        partials_(parts.partials),
        lowest_tag_(parts.lowest_tag),
        attention_(limits),
        best_(parts.best),
        matmul_(MatmulLimitsOf(limits), parts.matmul, owned_.gemm.get(),
                stream) {}
  // Kernels of an unfinished pass still use the memory.
  ~CudaPassOps() override { (void)stream_->Synchronize(); }

  Status BeginPass(const PassTokens& tokens) override {
    first_not_finite_ = -1;
    attention_.Plan(tokens);
    RETURN_IF_ERROR(owned_.upload->Send(tokens, attention_, stream_));
    return cuda::ResetTag(lowest_tag_, stream_);
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
    return best_.CopyOut(host, logits, rows, stride, n, k, stream_);
  }
  // The copies are the last work of the stream, or close to it.
  Status WaitForCopies() override { return stream_->Synchronize(); }

  Status Dequantize(const TensorView& row, float* out) override {
    return cuda::Dequantize(row, out, stream_);
  }

  Status Norm(NormKind kind, const float* x, const float* weight, float eps,
              int64_t rows, int64_t n, float* out) override {
    return NormRows(kind, x, nullptr, weight, eps, rows, n, out);
  }
  Status NormLogitRows(NormKind kind, const float* x, const float* weight,
                       float eps, int64_t n, float* out) override {
    const cuda::PassUpload& pass = *owned_.upload;
    return NormRows(kind, x, pass.logit_rows(), weight, eps,
                    pass.logit_row_count(), n, out);
  }

  Status SetInput(const float* x, int64_t rows, int64_t k) override {
    return matmul_.SetInput(x, rows, k);
  }
  Status Matmul(const TensorView& weight, float* out,
                int64_t out_stride) override {
    return matmul_.Run(weight, out, out_stride);
  }

  Status AddBias(const float* bias, int64_t rows, int64_t n,
                 float* x) override {
    return cuda::AddBias(bias, rows, n, x, stream_);
  }
  Status Add(const float* x, int64_t n, float* out) override {
    return cuda::Add(x, n, out, stream_);
  }
  Status Scale(float factor, int64_t n, float* x) override {
    return cuda::Scale(factor, n, x, stream_);
  }
  Status SwiGlu(const float* gate, const float* up, int64_t n,
                float* out) override {
    return cuda::SwiGlu(gate, up, n, out, stream_);
  }

  Status Rope(float* x, int64_t heads, int64_t head_dim,
              RopePairing pairing) override {
    const cuda::PassUpload& pass = *owned_.upload;
    return cuda::Rope(x, pass.rope(), pass.tokens().count, heads, head_dim,
                      limits_.rot_dim, pairing, stream_);
  }
  Status StoreKv(const float* k, const float* v,
                 const KvLayer& layer) override {
    return cuda::StoreKv(k, v, owned_.upload->tokens(), layer, stream_);
  }
  Status Attend(const float* q, const KvLayer& layer, float* out) override {
    return cuda::Attend({.q = q,
                         .out = out,
                         .partials = partials_,
                         .layer = layer,
                         .tokens = owned_.upload->tokens(),
                         .work = owned_.upload->work()},
                        stream_);
  }

  Status CheckFinite(const float* x, int64_t n, int tag) override {
    return cuda::CheckFinite(x, n, tag, lowest_tag_, stream_);
  }

  Status Finish() override {
    RETURN_IF_ERROR(stream_->CopyToHost(
        owned_.result.data(), reinterpret_cast<std::byte*>(lowest_tag_),
        sizeof(int32_t)));
    RETURN_IF_ERROR(stream_->Synchronize());
    const int32_t tag = *reinterpret_cast<int32_t*>(owned_.result.data());
    first_not_finite_ = tag == cuda::kNoTag ? -1 : tag;
    return absl::OkStatus();
  }
  int first_not_finite() const override { return first_not_finite_; }
  uint64_t memory_bytes() const override { return owned_.memory.size(); }

 private:
  Status NormRows(NormKind kind, const float* x, const int32_t* gather,
                  const float* weight, float eps, int64_t rows, int64_t n,
                  float* out) {
    if (kind == NormKind::kRms)
      return cuda::RmsNorm(x, gather, weight, eps, rows, n, out, stream_);
    return cuda::LayerNorm(x, gather, weight, nullptr, eps, rows, n, out,
                           stream_);
  }

  Stream* const stream_;
  const PassLimits limits_;
  Owned owned_;
  float* const partials_;
  int32_t* const lowest_tag_;
  cuda::AttentionWork attention_;
  const cuda::DeviceBestLogits best_;
  cuda::DeviceMatmul matmul_;
  int first_not_finite_ = -1;
};

}  // namespace

uint64_t CudaPassOpsBytes(const PassLimits& limits) {
  cuda::MemoryCutter cutter(nullptr);
  Cut(limits, &cutter);
  return cutter.taken();
}

uint64_t CudaPassOpsHostBytes(const PassLimits& limits) {
  return cuda::PassUpload::BytesFor(limits) + sizeof(int32_t);
}

StatusOr<std::unique_ptr<PassOps>> CreateCudaPassOps(Device* device,
                                                     Stream* stream,
                                                     const PassLimits& limits) {
  RETURN_IF_ERROR(CheckCudaPassLimits(limits));
  CudaPassOps::Owned owned;
  ASSIGN_OR_RETURN(owned.memory, device->Allocate(CudaPassOpsBytes(limits),
                                                  "scratch of the kernels"));
  ASSIGN_OR_RETURN(
      owned.result,
      PinnedMemory::Allocate(device, sizeof(int32_t), "the result of a pass"));
  cuda::MemoryCutter cutter(owned.memory.data());
  const Parts parts = Cut(limits, &cutter);
  ASSIGN_OR_RETURN(owned.upload,
                   cuda::PassUpload::Create(device, limits, parts.upload));
  if (!parts.gemm.empty()) {
    ASSIGN_OR_RETURN(owned.gemm, cuda::Gemm::Create(stream, parts.gemm));
  }
  return std::make_unique<CudaPassOps>(stream, limits, parts, std::move(owned));
}

}  // namespace coldstream
