// Every intermediate buffer of a pass, taken once.
#ifndef COLDSTREAM_GRAPHS_WORKSPACE_H_
#define COLDSTREAM_GRAPHS_WORKSPACE_H_

#include <cstdint>

#include "base/host_memory.h"
#include "base/status.h"
#include "graphs/model_config.h"
#include "kernels/matmul.h"

namespace coldstream {

// Row-major floats; T: tokens of a pass, R: rows that want logits. The buffers
// of attention and FFN share memory: a pass is in one of them at a time.
struct Workspace {
  static StatusOr<Workspace> Create(const ModelConfig& config,
                                    int64_t max_tokens, int64_t max_logit_rows);
  // Bytes Create takes, the Activations' included.
  static uint64_t BytesFor(const ModelConfig& config, int64_t max_tokens,
                           int64_t max_logit_rows);

  int64_t max_tokens = 0;
  int64_t max_logit_rows = 0;
  float* x = nullptr;          // [T, hidden] the residual stream
  float* normed = nullptr;     // [T, hidden]
  float* projected = nullptr;  // [T, hidden]
  float* rope = nullptr;       // [T, rot_dim / 2, 2]
  float* q = nullptr;          // [T, heads * key_dim]       attention
  float* k = nullptr;          // [T, kv_heads * key_dim]    attention
  float* v = nullptr;          // [T, kv_heads * value_dim]  attention
  float* attended = nullptr;   // [T, heads * value_dim]     attention
  float* gate = nullptr;       // [T, ffn]                   FFN
  float* up = nullptr;         // [T, ffn]                   FFN
  float* vector = nullptr;     // [widest] a norm or bias, as floats
  float* head_in = nullptr;    // [R, hidden]
  float* logits = nullptr;     // [R, vocab_rows]
  Activations activations;

 private:
  HostMemory memory_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_WORKSPACE_H_
