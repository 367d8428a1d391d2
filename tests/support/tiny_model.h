// Small random models on disk, for tests that need a whole engine.
#ifndef COLDSTREAM_TESTS_SUPPORT_TINY_MODEL_H_
#define COLDSTREAM_TESTS_SUPPORT_TINY_MODEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "io/gguf_value.h"

namespace coldstream {

struct TinyModelOptions {
  std::string architecture = "llama";  // llama, qwen2 or command-r
  int64_t layers = 2;
  int64_t hidden = 64;
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t head_dim = 16;
  int64_t ffn = 96;
  int64_t vocab = 300;
  int64_t context = 256;
  bool tied = false;
  DType type = DType::kQ8_0;  // of every matrix; F32, F16 or a 32-value type
  // Every weight is multiplied by this: large values overflow on purpose.
  float scale = 1;
  uint64_t seed = 1;
  // Metadata added, or put in place of what the options above give.
  std::map<std::string, GgufValue> metadata = {};
  std::vector<std::string> without = {};        // keys and tensors left out
  std::vector<std::string> extra_tensors = {};  // F32 [hidden] ones
};

// Writes a GGUF file with a byte-level BPE vocabulary: ids 0..255 the bytes,
// then filler tokens, the last two BOS and EOS.
Status WriteTinyModel(const std::string& path, const TinyModelOptions& options);

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_TINY_MODEL_H_
