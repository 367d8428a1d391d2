// Every intermediate buffer of a pass, taken once.
#ifndef COLDSTREAM_GRAPHS_WORKSPACE_H_
#define COLDSTREAM_GRAPHS_WORKSPACE_H_

#include <cstdint>

#include "base/device.h"
#include "base/host_memory.h"
#include "base/status.h"
#include "graphs/model_config.h"
#include "kernels/best_logits.h"

namespace coldstream {

// Row-major floats in the device's memory unless called host; T: tokens of a
// pass, R: rows that want logits. The buffers of attention and FFN share
// memory: a pass is in one of them at a time. Where device memory is host
// memory, host_x is x, host_logits is logits and host_hidden is normed;
// elsewhere host_hidden is host_x, which a pass needs at its beginning alone.
struct Workspace {
  // The device must outlive the workspace. Errors: ResourceExhausted.
  static StatusOr<Workspace> Create(const ModelConfig& config,
                                    int64_t max_tokens, int64_t max_logit_rows,
                                    Device* device);
  // Bytes Create takes of the device's memory, and of the host's beside it.
  static uint64_t DeviceBytes(const ModelConfig& config, int64_t max_tokens,
                              int64_t max_logit_rows);
  static uint64_t HostBytes(const ModelConfig& config, int64_t max_tokens,
                            int64_t max_logit_rows, DeviceKind kind);

  int64_t max_tokens = 0;
  int64_t max_logit_rows = 0;
  float* x = nullptr;            // [T, hidden] the residual stream
  float* normed = nullptr;       // [T, hidden]
  float* projected = nullptr;    // [T, hidden]
  float* q = nullptr;            // [T, heads * key_dim]       attention
  float* k = nullptr;            // [T, kv_heads * key_dim]    attention
  float* v = nullptr;            // [T, kv_heads * value_dim]  attention
  float* attended = nullptr;     // [T, heads * value_dim]     attention
  float* gate = nullptr;         // [T, ffn]                   FFN
  float* up = nullptr;           // [T, ffn]                   FFN
  float* vector = nullptr;       // [widest] a norm or bias, as floats
  float* head_in = nullptr;      // [R, hidden]
  float* logits = nullptr;       // [R, vocab_rows]
  float* rope = nullptr;         // host, [T, rot_dim / 2, 2]
  float* host_x = nullptr;       // host, [T, hidden]
  float* host_logits = nullptr;  // host, [R, vocab_rows]
  float* host_hidden = nullptr;  // host, [T, hidden]
  // Host, [R, kMostChoices]; null where host_logits is logits.
  LogitChoice* host_best = nullptr;

 private:
  DeviceMemory device_memory_;
  HostMemory host_memory_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_WORKSPACE_H_
