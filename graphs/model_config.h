// The numbers that shape a model, from its metadata.
//
// Source: the GGUF specification's list of architecture keys.
#ifndef COLDSTREAM_GRAPHS_MODEL_CONFIG_H_
#define COLDSTREAM_GRAPHS_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "graphs/architecture.h"
#include "io/checkpoint.h"
#include "kernels/rope_table.h"

namespace coldstream {

// Per layer, because models differ from layer to layer.
struct LayerShape {
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads
  int64_t key_dim = 0;   // of a head; need not be hidden / heads
  int64_t value_dim = 0;
  int64_t ffn = 0;
};

struct ModelConfig {
  const Architecture* architecture = nullptr;
  std::string name;
  int64_t hidden = 0;
  int64_t vocab_rows = 0;  // rows of the embedding; >= tokens in the vocabulary
  int64_t train_context = 0;
  float norm_epsilon = 0;
  float logit_scale = 1;
  RopeParams rope;
  std::vector<LayerShape> layers;

  int64_t layer_count() const { return static_cast<int64_t>(layers.size()); }
  int64_t max_q_width() const;      // heads * key_dim
  int64_t max_value_width() const;  // heads * value_dim
  int64_t max_kv_width() const;     // kv_heads * max(key_dim, value_dim)
  int64_t max_ffn() const;
};

// Errors name the key: NotFound (missing), InvalidArgument (zero, absurd, wrong
// array length, unknown rope scaling), Unimplemented (architecture; experts;
// sliding window). Reads the rope_freqs tensor, if there is one, from its file.
StatusOr<ModelConfig> LoadModelConfig(const Checkpoint& checkpoint);

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_MODEL_CONFIG_H_
