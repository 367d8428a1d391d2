#include "tools/synth_model.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

constexpr double kNormSpread = 0.1;
constexpr double kBiasSpread = 0.1;
// Standard deviation of the logits over the vocabulary: peaked enough that
// neighbouring ranks differ, flat enough that sampling varies.
constexpr double kLogitSpread = 2.5;

class ModelDescriber {
 public:
  ModelDescriber(const ModelShape& shape, const QuantMix& mix) : shape_(shape) {
    model_.shape = shape;
    model_.mix = mix;
  }

  SynthModel Describe() && {
    const int64_t hidden = shape_.hidden;
    AddMatrix("token_embd.weight",
              shape_.tied ? WeightRole::kHead : WeightRole::kEmbedding, 0,
              hidden, shape_.vocab);
    for (int64_t layer = 0; layer < shape_.layers; ++layer) {
      AddAttention(layer);
      AddFfn(layer);
    }
    AddVector("output_norm.weight", hidden,
              kLogitSpread / shape_.logit_scale.value_or(1), kNormSpread);
    if (!shape_.tied)
      AddMatrix("output.weight", WeightRole::kHead, 0, hidden, shape_.vocab);
    for (const auto& [kind, count] : fallback_counts_)
      model_.fallbacks.push_back(
          absl::StrFormat("%s (%d tensors)", kind, count));
    return std::move(model_);
  }

 private:
  void AddAttention(int64_t layer) {
    const int64_t hidden = shape_.hidden;
    const int64_t q_rows = shape_.heads * shape_.head_dim;
    const int64_t kv_rows = shape_.kv_heads * shape_.head_dim;
    AddNorm(layer, "attn_norm");
    AddProjection(layer, "attn_q", WeightRole::kAttentionQk, q_rows);
    AddProjection(layer, "attn_k", WeightRole::kAttentionQk, kv_rows);
    AddProjection(layer, "attn_v", WeightRole::kAttentionV, kv_rows);
    AddMatrix(BlockName(layer, "attn_output.weight"),
              WeightRole::kAttentionOutput, layer, q_rows, hidden);
  }

  // Q, K and V have biases in qwen2.
  void AddProjection(int64_t layer, const char* name, WeightRole role,
                     int64_t rows) {
    AddMatrix(BlockName(layer, absl::StrFormat("%s.weight", name)), role, layer,
              shape_.hidden, rows);
    if (shape_.arch == ModelArch::kQwen2)
      AddVector(BlockName(layer, absl::StrFormat("%s.bias", name)), rows, 0,
                kBiasSpread);
  }

  void AddFfn(int64_t layer) {
    // command-r feeds attention and FFN from one norm.
    if (shape_.arch != ModelArch::kCommandR) AddNorm(layer, "ffn_norm");
    const int64_t hidden = shape_.hidden;
    AddMatrix(BlockName(layer, "ffn_gate.weight"), WeightRole::kFfnGateUp,
              layer, hidden, shape_.ffn);
    AddMatrix(BlockName(layer, "ffn_up.weight"), WeightRole::kFfnGateUp, layer,
              hidden, shape_.ffn);
    AddMatrix(BlockName(layer, "ffn_down.weight"), WeightRole::kFfnDown, layer,
              shape_.ffn, hidden);
  }

  void AddNorm(int64_t layer, const char* name) {
    AddVector(BlockName(layer, absl::StrFormat("%s.weight", name)),
              shape_.hidden, 1, kNormSpread);
  }

  void AddVector(std::string name, int64_t n, double mean, double spread) {
    // Relative to the mean where there is one, so that a norm of 40 varies as
    // one of 1 does.
    model_.tensors.push_back({.name = std::move(name),
                              .type = DType::kF32,
                              .shape = {static_cast<uint64_t>(n)},
                              .mean = mean,
                              .stddev = mean > 0 ? mean * spread : spread});
  }

  void AddMatrix(std::string name, WeightRole role, int64_t layer, int64_t cols,
                 int64_t rows) {
    const auto in = static_cast<uint64_t>(cols);
    const DType wanted = model_.mix.TypeFor(
        {.role = role,
         .layer = layer,
         .layers = shape_.layers,
         .heads_per_kv_head = shape_.heads / shape_.kv_heads});
    const DType type = FallbackFor(wanted, in);
    if (type != wanted)
      ++fallback_counts_[absl::StrFormat(
          "rows of %d are no multiple of %d: %s instead of %s", cols,
          InfoOf(wanted).block_elements, InfoOf(type).name,
          InfoOf(wanted).name)];
    model_.tensors.push_back(
        {.name = std::move(name),
         .type = type,
         .shape = {in, static_cast<uint64_t>(rows)},
         .mean = 0,
         .stddev = 1 / std::sqrt(static_cast<double>(cols))});
  }

  static std::string BlockName(int64_t layer, const std::string& name) {
    return absl::StrFormat("blk.%d.%s", layer, name);
  }

  const ModelShape& shape_;
  SynthModel model_;
  std::map<std::string, int> fallback_counts_;
};

}  // namespace

uint64_t SynthTensor::bytes() const {
  uint64_t rows = 1;
  for (size_t i = 1; i < shape.size(); ++i) rows *= shape[i];
  return rows * RowBytes(type, shape[0]);
}

uint64_t SynthModel::tensor_bytes() const {
  uint64_t bytes = 0;
  for (const SynthTensor& tensor : tensors) bytes += tensor.bytes();
  return bytes;
}

SynthModel DescribeSynthModel(const ModelShape& shape, const QuantMix& mix) {
  return ModelDescriber(shape, mix).Describe();
}

}  // namespace coldstream
