#include "graphs/workspace.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace coldstream {
namespace {

// Gives out 64-byte aligned arrays from one block. Run once without a
// block to learn the size, once with it to set the pointers.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  template <typename T>
  void Take(int64_t count, T** out) {
    if (base_ != nullptr) *out = reinterpret_cast<T*>(base_ + used_);
    used_ += (static_cast<uint64_t>(count) * sizeof(T) + 63) / 64 * 64;
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

uint64_t CarveDevice(const ModelConfig& config, int64_t tokens, int64_t rows,
                     std::byte* base, Workspace* workspace) {
  Carver carver(base);
  Workspace& w = *workspace;
  const int64_t hidden = config.hidden;
  const int64_t kv_width = config.max_kv_width();
  carver.Take(tokens * hidden, &w.x);
  carver.Take(tokens * hidden, &w.normed);
  carver.Take(tokens * hidden, &w.projected);
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

uint64_t CarveHost(const ModelConfig& config, int64_t tokens, int64_t rows,
                   DeviceKind kind, std::byte* base, Workspace* workspace) {
  Carver carver(base);
  carver.Take(tokens * config.rope.rot_dim, &workspace->rope);
  if (kind != DeviceKind::kCpu) {
    carver.Take(tokens * config.hidden, &workspace->host_x);
    carver.Take(rows * config.vocab_rows, &workspace->host_logits);
    carver.Take(rows * kMostChoices, &workspace->host_best);
  }
  return carver.high();
}

}  // namespace

uint64_t Workspace::DeviceBytes(const ModelConfig& config, int64_t max_tokens,
                                int64_t max_logit_rows) {
  Workspace unused;
  return CarveDevice(config, max_tokens, max_logit_rows, nullptr, &unused);
}

uint64_t Workspace::HostBytes(const ModelConfig& config, int64_t max_tokens,
                              int64_t max_logit_rows, DeviceKind kind) {
  Workspace unused;
  return CarveHost(config, max_tokens, max_logit_rows, kind, nullptr, &unused);
}

StatusOr<Workspace> Workspace::Create(const ModelConfig& config,
                                      int64_t max_tokens,
                                      int64_t max_logit_rows, Device* device) {
  Workspace workspace;
  workspace.max_tokens = max_tokens;
  workspace.max_logit_rows = max_logit_rows;
  ASSIGN_OR_RETURN(
      workspace.device_memory_,
      device->Allocate(DeviceBytes(config, max_tokens, max_logit_rows),
                       "activations"));
  CarveDevice(config, max_tokens, max_logit_rows,
              workspace.device_memory_.data(), &workspace);
  const DeviceKind kind = device->kind();
  ASSIGN_OR_RETURN(
      workspace.host_memory_,
      HostMemory::Allocate(HostBytes(config, max_tokens, max_logit_rows, kind),
                           "activations"));
  CarveHost(config, max_tokens, max_logit_rows, kind,
            workspace.host_memory_.data(), &workspace);
  if (kind == DeviceKind::kCpu) {
    workspace.host_x = workspace.x;
    workspace.host_logits = workspace.logits;
  }
  workspace.host_hidden =
      kind == DeviceKind::kCpu ? workspace.normed : workspace.host_x;
  return workspace;
}

}  // namespace coldstream
