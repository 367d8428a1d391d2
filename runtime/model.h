// An opened model: headers, shape, weight units and tokenizer. No weights read.
//
// Shared by the engines that run it and by whoever tokenises before an engine
// is planned (a context can then be made no larger than a prompt needs).
#ifndef COLDSTREAM_RUNTIME_MODEL_H_
#define COLDSTREAM_RUNTIME_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "graphs/model_config.h"
#include "graphs/weight_map.h"
#include "io/checkpoint.h"
#include "runtime/tokenizer.h"

namespace coldstream {

struct ModelOptions {
  // A GGUF file, any part of a split one, or the folder of one model.
  std::string path;
  DirectMode direct = DirectMode::kAuto;
  TokenizerOptions tokenizer = {};
  uint64_t unit_bytes = kDefaultUnitBytes;  // see MapWeights
};

class Model {
 public:
  // Errors: those of Checkpoint::Open, LoadModelConfig and MapWeights. A
  // tokenizer that cannot be made is no error here: see tokenizer().
  static StatusOr<std::shared_ptr<const Model>> Open(
      const ModelOptions& options);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const ModelConfig& config() const { return config_; }
  const WeightMap& weights() const { return weights_; }

  // The tokenizer, or why there is none (unknown pre-tokenizer, no vocabulary).
  StatusOr<const Tokenizer*> tokenizer() const;

  // Token ids below this may be sampled: rows past the vocabulary are padding.
  int64_t vocab_size() const;

  // Heap bytes of metadata and tokenizer, for the memory plan.
  uint64_t memory_bytes() const;

 private:
  Model() = default;
  Checkpoint checkpoint_;
  ModelConfig config_;
  WeightMap weights_;
  Status tokenizer_status_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_MODEL_H_
