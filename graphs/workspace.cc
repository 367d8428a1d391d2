#include "graphs/workspace.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace coldstream {
namespace {

// Gives out 64-byte aligned float arrays from one block. Run once without a
// block to learn the size, once with it to set the pointers.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  void Take(int64_t floats, float** out) {
    if (base_ != nullptr) *out = reinterpret_cast<float*>(base_ + used_);
    used_ += (static_cast<uint64_t>(floats) * sizeof(float) + 63) / 64 * 64;
    high_ = std::max(high_, used_);
  }
  uint64_t mark() const { return used_; }
  void Rewind(uint64_t mark) { used_ = mark; }
  uint64_t high() const { return high_; }

 private:
  std::byte* base_;
  uint64_t used_ = 0;
  uint64_t high_ = 0;
};

uint64_t Carve(const ModelConfig& config, int64_t tokens, int64_t rows,
               std::byte* base, Workspace* workspace) {
  Carver carver(base);
  Workspace& w = *workspace;
  const int64_t hidden = config.hidden;
  const int64_t kv_width = config.max_kv_width();
  carver.Take(tokens * hidden, &w.x);
  carver.Take(tokens * hidden, &w.normed);
  carver.Take(tokens * hidden, &w.projected);
  carver.Take(tokens * config.rope.rot_dim, &w.rope);
  carver.Take(std::max({hidden, config.max_q_width(), kv_width}), &w.vector);
  carver.Take(rows * hidden, &w.head_in);
  carver.Take(rows * config.vocab_rows, &w.logits);
  const uint64_t shared = carver.mark();
  carver.Take(tokens * config.max_q_width(), &w.q);
  carver.Take(tokens * kv_width, &w.k);
  carver.Take(tokens * kv_width, &w.v);
  carver.Take(tokens * config.max_value_width(), &w.attended);
  carver.Rewind(shared);
  carver.Take(tokens * config.max_ffn(), &w.gate);
  carver.Take(tokens * config.max_ffn(), &w.up);
  return carver.high();
}

int64_t WidestInput(const ModelConfig& config) {
  return std::max({config.hidden, config.max_value_width(), config.max_ffn()});
}

}  // namespace

uint64_t Workspace::BytesFor(const ModelConfig& config, int64_t max_tokens,
                             int64_t max_logit_rows) {
  Workspace unused;
  return Carve(config, max_tokens, max_logit_rows, nullptr, &unused) +
         Activations::BytesFor(std::max(max_tokens, max_logit_rows),
                               WidestInput(config));
}

StatusOr<Workspace> Workspace::Create(const ModelConfig& config,
                                      int64_t max_tokens,
                                      int64_t max_logit_rows) {
  Workspace workspace;
  workspace.max_tokens = max_tokens;
  workspace.max_logit_rows = max_logit_rows;
  const uint64_t bytes =
      Carve(config, max_tokens, max_logit_rows, nullptr, &workspace);
  ASSIGN_OR_RETURN(workspace.memory_,
                   HostMemory::Allocate(bytes, "activations"));
  Carve(config, max_tokens, max_logit_rows, workspace.memory_.data(),
        &workspace);
  ASSIGN_OR_RETURN(workspace.activations,
                   Activations::Create(std::max(max_tokens, max_logit_rows),
                                       WidestInput(config)));
  return workspace;
}

}  // namespace coldstream
