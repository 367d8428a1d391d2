// PassOps over a row of the ops table. Every call is done when it returns.
//
// A token's results do not depend on its batch mates: see kernels/ops.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/kv_rows.h"
#include "kernels/matmul.h"
#include "kernels/pass_ops.h"

namespace coldstream {
namespace {

// Values a thread takes at a time in loops over values.
constexpr int64_t kValueGrain = 1024;
// Rows a thread takes at a time where a row is an addition.
constexpr int64_t kRowGrain = 8;

class CpuPassOps final : public PassOps {
 public:
  CpuPassOps(const Ops* ops, Parallel* parallel, const PassLimits& limits,
             Activations input)
      : ops_(*ops),
        parallel_(*parallel),
        limits_(limits),
        input_(std::move(input)) {
    attention_tokens_.reserve(static_cast<size_t>(limits.tokens));
    block_pointers_.reserve(2 * static_cast<size_t>(limits.blocks));
  }

  Status BeginPass(const PassTokens& tokens) override {
    tokens_ = tokens;
    first_not_finite_ = -1;
    return absl::OkStatus();
  }

  // Host and device memory are one: a copy onto itself is none.
  Status CopyIn(float* out, const float* host, int64_t n) override {
    if (out != host)
      std::memcpy(out, host, static_cast<size_t>(n) * sizeof(float));
    return absl::OkStatus();
  }
  Status CopyOut(float* host, const float* x, int64_t n) override {
    return CopyIn(host, x, n);
  }
  Status CopyOutBest(LogitChoice* host, const float* logits, int64_t rows,
                     int64_t stride, int64_t n, int64_t k) override {
    parallel_.For(rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        BestLogits(logits + row * stride, n, k, host + row * k);
    });
    return absl::OkStatus();
  }
  Status WaitForCopies() override { return absl::OkStatus(); }

  Status Dequantize(const TensorView& row, float* out) override {
    ops_.MatmulFor(row.type).dequantize(row.data, row.cols, out);
    return absl::OkStatus();
  }

  Status Norm(NormKind kind, const float* x, const float* weight, float eps,
              int64_t rows, int64_t n, float* out) override {
    parallel_.For(rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        NormRow(kind, x + row * n, weight, eps, n, out + row * n);
    });
    return absl::OkStatus();
  }

  Status NormLogitRows(NormKind kind, const float* x, const float* weight,
                       float eps, int64_t n, float* out) override {
    for (size_t row = 0; row < tokens_.logit_rows.size(); ++row)
      NormRow(kind, x + tokens_.logit_rows[row] * n, weight, eps, n,
              out + static_cast<int64_t>(row) * n);
    return absl::OkStatus();
  }

  Status SetInput(const float* x, int64_t rows, int64_t k) override {
    input_.Set(x, rows, k, k);
    return absl::OkStatus();
  }
  Status Matmul(const TensorView& weight, float* out,
                int64_t out_stride) override {
    coldstream::Matmul(ops_, parallel_, weight, input_, out, out_stride);
    return absl::OkStatus();
  }

  Status AddBias(const float* bias, int64_t rows, int64_t n,
                 float* x) override {
    for (int64_t row = 0; row < rows; ++row) ops_.add(bias, n, x + row * n);
    return absl::OkStatus();
  }
  Status Add(const float* x, int64_t n, float* out) override {
    parallel_.For(n, kRowGrain * kValueGrain, [&](int64_t begin, int64_t end) {
      ops_.add(x + begin, end - begin, out + begin);
    });
    return absl::OkStatus();
  }
  Status Scale(float factor, int64_t n, float* x) override {
    ops_.scale(factor, n, x);
    return absl::OkStatus();
  }
  Status SwiGlu(const float* gate, const float* up, int64_t n,
                float* out) override {
    parallel_.For(n, kValueGrain, [&](int64_t begin, int64_t end) {
      ops_.swiglu(gate + begin, up + begin, end - begin, out + begin);
    });
    return absl::OkStatus();
  }

  Status Rope(float* x, int64_t heads, int64_t head_dim,
              RopePairing pairing) override {
    parallel_.For(token_count(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        ops_.rope(x + t * heads * head_dim, heads, head_dim, limits_.rot_dim,
                  tokens_.rope.data() + t * limits_.rot_dim, pairing);
    });
    return absl::OkStatus();
  }

  Status StoreKv(const float* k, const float* v,
                 const KvLayer& layer) override {
    parallel_.For(token_count(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const auto token = static_cast<size_t>(t);
        const int64_t position = tokens_.positions[token];
        const int block = BlocksOf(tokens_.sequence[token])[static_cast<size_t>(
            position / kKvBlockTokens)];
        const int64_t slot = position % kKvBlockTokens;
        StoreKvRow(ops_, layer.type, k + t * layer.kv_heads * layer.key_dim,
                   layer.kv_heads, layer.key_dim, slot, layer.keys(block));
        StoreKvRow(ops_, layer.type, v + t * layer.kv_heads * layer.value_dim,
                   layer.kv_heads, layer.value_dim, slot, layer.values(block));
      }
    });
    return absl::OkStatus();
  }

  Status Attend(const float* q, const KvLayer& layer, float* out) override {
    PointAtBlocks(layer);
    AttentionArgs args;
    args.q = q;
    args.out = out;
    args.tokens = attention_tokens_.data();
    args.token_count = token_count();
    args.heads = layer.heads;
    args.kv_heads = layer.kv_heads;
    args.key_dim = layer.key_dim;
    args.value_dim = layer.value_dim;
    args.kv_type = layer.type;
    args.scale =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(layer.key_dim)));
    parallel_.For(AttentionItems(args), 1, [&](int64_t begin, int64_t end) {
      ops_.attention(args, begin, end);
    });
    return absl::OkStatus();
  }

  Status CheckFinite(const float* x, int64_t n, int tag) override {
    if (!ops_.all_finite(x, n) &&
        (first_not_finite_ < 0 || tag < first_not_finite_))
      first_not_finite_ = tag;
    return absl::OkStatus();
  }

  Status Finish() override { return absl::OkStatus(); }
  int first_not_finite() const override { return first_not_finite_; }
  uint64_t memory_bytes() const override { return CpuPassOpsBytes(limits_); }

 private:
  int64_t token_count() const {
    return static_cast<int64_t>(tokens_.positions.size());
  }
  std::span<const int32_t> BlocksOf(int32_t sequence) const {
    const auto s = static_cast<size_t>(sequence);
    const auto begin = static_cast<size_t>(tokens_.block_begin[s]);
    const auto end = static_cast<size_t>(tokens_.block_begin[s + 1]);
    return tokens_.blocks.subspan(begin, end - begin);
  }

  void NormRow(NormKind kind, const float* x, const float* weight, float eps,
               int64_t n, float* out) const {
    if (kind == NormKind::kRms) {
      ops_.rms_norm(x, weight, eps, n, out);
    } else {
      ops_.layer_norm(x, weight, nullptr, eps, n, out);
    }
  }

  // The block tables of this layer as pointers: keys and values a sequence.
  void PointAtBlocks(const KvLayer& layer) {
    block_pointers_.clear();
    block_pointers_.reserve(2 *
                            tokens_.blocks.size());  // pointers into it stay
    for (const int32_t block : tokens_.blocks)
      block_pointers_.push_back(layer.keys(block));
    for (const int32_t block : tokens_.blocks)
      block_pointers_.push_back(layer.values(block));
    attention_tokens_.resize(tokens_.positions.size());
    for (size_t t = 0; t < attention_tokens_.size(); ++t) {
      const int32_t first =
          tokens_.block_begin[static_cast<size_t>(tokens_.sequence[t])];
      const std::byte* const* keys = block_pointers_.data() + first;
      attention_tokens_[t] = {tokens_.positions[t], keys,
                              keys + tokens_.blocks.size()};
    }
  }

  const Ops& ops_;
  Parallel& parallel_;
  const PassLimits limits_;
  Activations input_;
  PassTokens tokens_;
  int first_not_finite_ = -1;
  // Scratch of Attend.
  std::vector<AttentionToken> attention_tokens_;
  std::vector<const std::byte*> block_pointers_;
};

int64_t InputRows(const PassLimits& limits) {
  return std::max(limits.tokens, limits.logit_rows);
}

}  // namespace

uint64_t CpuPassOpsBytes(const PassLimits& limits) {
  return Activations::BytesFor(InputRows(limits), limits.input_width);
}

StatusOr<std::unique_ptr<PassOps>> CreateCpuPassOps(const Ops* ops,
                                                    Parallel* parallel,
                                                    const PassLimits& limits) {
  ASSIGN_OR_RETURN(Activations input,
                   Activations::Create(InputRows(limits), limits.input_width));
  return std::make_unique<CpuPassOps>(ops, parallel, limits, std::move(input));
}

}  // namespace coldstream
