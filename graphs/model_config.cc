#include "graphs/model_config.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxWidth = int64_t{1} << 24;

// Reads "<arch>.<suffix>" keys.
class Keys {
 public:
  Keys(const Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  std::string Name(std::string_view suffix) const {
    return prefix_ + std::string(suffix);
  }
  bool Has(std::string_view suffix) const {
    return metadata_.Has(Name(suffix));
  }
  StatusOr<int64_t> Width(std::string_view suffix, int64_t max) const {
    ASSIGN_OR_RETURN(const int64_t value, metadata_.GetInt(Name(suffix)));
    RETURN_IF_ERROR(CheckRange(suffix, value, 1, max));
    return value;
  }
  StatusOr<int64_t> WidthOr(std::string_view suffix, int64_t fallback) const {
    if (!Has(suffix)) return fallback;
    return Width(suffix, kMaxWidth);
  }
  StatusOr<double> FloatOr(std::string_view suffix, double fallback) const {
    return metadata_.GetFloatOr(Name(suffix), fallback);
  }
  StatusOr<IntArray> PerLayer(std::string_view suffix, int64_t layers) const {
    ASSIGN_OR_RETURN(IntArray values,
                     metadata_.GetPerLayerInts(Name(suffix), layers));
    for (int64_t value : values)
      RETURN_IF_ERROR(CheckRange(suffix, value, 1, kMaxWidth));
    return values;
  }
  Status CheckRange(std::string_view suffix, int64_t value, int64_t low,
                    int64_t high) const {
    if (value >= low && value <= high) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("metadata key %s is %d, expected %d..%d", Name(suffix),
                        value, low, high));
  }
  // Refuses a feature whose presence would make plain results wrong.
  Status RefuseUnlessZero(std::string_view suffix, const char* feature) const {
    if (!Has(suffix)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const int64_t value, metadata_.GetInt(Name(suffix)));
    if (value == 0) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrFormat("metadata key %s is %d: %s is not supported",
                        Name(suffix), value, feature));
  }
  const Metadata& metadata() const { return metadata_; }

 private:
  const Metadata& metadata_;
  std::string prefix_;
};

StatusOr<std::vector<LayerShape>> LoadLayers(const Keys& keys, int64_t layers,
                                             int64_t hidden) {
  ASSIGN_OR_RETURN(const IntArray heads,
                   keys.PerLayer("attention.head_count", layers));
  IntArray kv_heads = heads;
  if (keys.Has("attention.head_count_kv")) {
    ASSIGN_OR_RETURN(kv_heads,
                     keys.PerLayer("attention.head_count_kv", layers));
  }
  ASSIGN_OR_RETURN(const IntArray ffn,
                   keys.PerLayer("feed_forward_length", layers));
  std::vector<LayerShape> shapes;
  for (size_t i = 0; i < static_cast<size_t>(layers); ++i) {
    LayerShape shape{heads[i], kv_heads[i], 0, 0, ffn[i]};
    ASSIGN_OR_RETURN(shape.key_dim, keys.WidthOr("attention.key_length",
                                                 hidden / shape.heads));
    ASSIGN_OR_RETURN(shape.value_dim, keys.WidthOr("attention.value_length",
                                                   hidden / shape.heads));
    if (shape.heads % shape.kv_heads != 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "layer %d: %d heads (%s) are no multiple of %d kv heads (%s)", i,
          shape.heads, keys.Name("attention.head_count"), shape.kv_heads,
          keys.Name("attention.head_count_kv")));
    }
    if (shape.key_dim < 1 || shape.value_dim < 1) {
      return absl::InvalidArgumentError(
          absl::StrFormat("layer %d: %d heads leave no width of %s %d", i,
                          shape.heads, keys.Name("embedding_length"), hidden));
    }
    shapes.push_back(shape);
  }
  return shapes;
}

StatusOr<std::vector<float>> LoadRopeFreqs(const Checkpoint& checkpoint,
                                           int64_t rot_dim) {
  const TensorInfo* tensor = checkpoint.Find("rope_freqs.weight");
  std::vector<float> divisors;
  if (tensor == nullptr) return divisors;
  if (tensor->type != DType::kF32 || tensor->rows() != 1 ||
      tensor->cols() != rot_dim / 2) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "tensor rope_freqs.weight is %s [%d, %d], expected f32 [%d]",
        InfoOf(tensor->type).name, tensor->cols(), tensor->rows(),
        rot_dim / 2));
  }
  divisors.resize(static_cast<size_t>(rot_dim / 2));
  const File& file =
      *checkpoint.files()[static_cast<size_t>(tensor->extent.file)];
  RETURN_IF_ERROR(file.ReadExactly(
      tensor->extent.offset, std::as_writable_bytes(std::span(divisors))));
  for (float divisor : divisors) {
    if (!(divisor > 0) || divisor > std::numeric_limits<float>::max()) {
      return absl::DataLossError(
          absl::StrFormat("%s: tensor rope_freqs.weight holds %g, expected "
                          "positive finite values",
                          file.path(), divisor));
    }
  }
  return divisors;
}

StatusOr<RopeScaling> ScalingFromName(const Keys& keys) {
  ASSIGN_OR_RETURN(
      const std::string name,
      keys.metadata().GetStringOr(keys.Name("rope.scaling.type"), "none"));
  if (name == "none") return RopeScaling::kNone;
  if (name == "linear") return RopeScaling::kLinear;
  if (name == "yarn") return RopeScaling::kYarn;
  return absl::InvalidArgumentError(absl::StrFormat(
      "metadata key %s is \"%s\", expected none, linear or yarn",
      keys.Name("rope.scaling.type"), name));
}

StatusOr<RopeParams> LoadRope(const Checkpoint& checkpoint, const Keys& keys,
                              const ModelConfig& config) {
  int64_t least_key_dim = kMaxWidth;
  for (const LayerShape& layer : config.layers)
    least_key_dim = std::min(least_key_dim, layer.key_dim);
  RopeParams rope;
  ASSIGN_OR_RETURN(rope.rot_dim,
                   keys.WidthOr("rope.dimension_count", least_key_dim));
  if (rope.rot_dim % 2 != 0 || rope.rot_dim > least_key_dim) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "metadata key %s is %d, expected an even number up to the head width "
        "%d",
        keys.Name("rope.dimension_count"), rope.rot_dim, least_key_dim));
  }
  ASSIGN_OR_RETURN(rope.base, keys.FloatOr("rope.freq_base", 10000));
  ASSIGN_OR_RETURN(rope.scaling, ScalingFromName(keys));
  // Files of before 2023-10 carry only the linear factor, under another name.
  ASSIGN_OR_RETURN(const double old_factor,
                   keys.FloatOr("rope.scale_linear", 1));
  ASSIGN_OR_RETURN(rope.factor,
                   keys.FloatOr("rope.scaling.factor", old_factor));
  if (!keys.Has("rope.scaling.type") && rope.factor != 1)
    rope.scaling = RopeScaling::kLinear;
  ASSIGN_OR_RETURN(rope.original_context,
                   keys.WidthOr("rope.scaling.original_context_length",
                                config.train_context));
  ASSIGN_OR_RETURN(rope.attention_factor,
                   keys.FloatOr("rope.scaling.attn_factor", 0));
  ASSIGN_OR_RETURN(rope.extrapolation,
                   keys.FloatOr("rope.scaling.yarn_ext_factor", 1));
  ASSIGN_OR_RETURN(rope.beta_fast,
                   keys.FloatOr("rope.scaling.yarn_beta_fast", 32));
  ASSIGN_OR_RETURN(rope.beta_slow,
                   keys.FloatOr("rope.scaling.yarn_beta_slow", 1));
  if (!(rope.base > 0) || !(rope.factor > 0)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("metadata keys %s = %g and %s = %g must be positive",
                        keys.Name("rope.freq_base"), rope.base,
                        keys.Name("rope.scaling.factor"), rope.factor));
  }
  ASSIGN_OR_RETURN(rope.frequency_divisors,
                   LoadRopeFreqs(checkpoint, rope.rot_dim));
  return rope;
}

int64_t MaxOver(const std::vector<LayerShape>& layers,
                int64_t (*width)(const LayerShape&)) {
  int64_t max = 0;
  for (const LayerShape& layer : layers) max = std::max(max, width(layer));
  return max;
}

}  // namespace

int64_t ModelConfig::max_q_width() const {
  return MaxOver(layers,
                 [](const LayerShape& l) { return l.heads * l.key_dim; });
}
int64_t ModelConfig::max_value_width() const {
  return MaxOver(layers,
                 [](const LayerShape& l) { return l.heads * l.value_dim; });
}
int64_t ModelConfig::max_kv_width() const {
  return MaxOver(layers, [](const LayerShape& l) {
    return l.kv_heads * std::max(l.key_dim, l.value_dim);
  });
}
int64_t ModelConfig::max_ffn() const {
  return MaxOver(layers, [](const LayerShape& l) { return l.ffn; });
}

StatusOr<ModelConfig> LoadModelConfig(const Checkpoint& checkpoint) {
  const Metadata& metadata = checkpoint.metadata();
  ModelConfig config;
  ASSIGN_OR_RETURN(const std::string architecture,
                   metadata.GetString("general.architecture"));
  ASSIGN_OR_RETURN(config.architecture, FindArchitecture(architecture));
  const Keys keys(metadata, architecture);
  ASSIGN_OR_RETURN(config.name,
                   metadata.GetStringOr("general.name", "unnamed"));
  RETURN_IF_ERROR(
      keys.RefuseUnlessZero("expert_count", "a mixture of experts"));
  RETURN_IF_ERROR(keys.RefuseUnlessZero("attention.sliding_window",
                                        "sliding-window attention"));
  ASSIGN_OR_RETURN(const int64_t layers, keys.Width("block_count", kMaxLayers));
  ASSIGN_OR_RETURN(config.hidden, keys.Width("embedding_length", kMaxWidth));
  ASSIGN_OR_RETURN(
      config.train_context,
      keys.Width("context_length", std::numeric_limits<int32_t>::max()));
  const char* epsilon_key = config.architecture->norm == NormKind::kRms
                                ? "attention.layer_norm_rms_epsilon"
                                : "attention.layer_norm_epsilon";
  ASSIGN_OR_RETURN(const double epsilon,
                   metadata.GetFloat(keys.Name(epsilon_key)));
  if (!(epsilon >= 0) || epsilon > 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("metadata key %s is %g, expected 0..1",
                        keys.Name(epsilon_key), epsilon));
  }
  config.norm_epsilon = static_cast<float>(epsilon);
  if (config.architecture->logit_scale) {
    ASSIGN_OR_RETURN(const double scale,
                     metadata.GetFloat(keys.Name("logit_scale")));
    config.logit_scale = static_cast<float>(scale);
  }
  ASSIGN_OR_RETURN(config.layers, LoadLayers(keys, layers, config.hidden));
  ASSIGN_OR_RETURN(config.rope, LoadRope(checkpoint, keys, config));
  ASSIGN_OR_RETURN(const TensorInfo* embedding,
                   checkpoint.Get("token_embd.weight"));
  config.vocab_rows = embedding->rows();
  return config;
}

}  // namespace coldstream
