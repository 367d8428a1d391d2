// The dimensions of a decoder model, as `synth` takes them: a preset named
// after a real model, explicit numbers, or a preset with some of them changed.
#ifndef COLDSTREAM_TOOLS_MODEL_SHAPE_H_
#define COLDSTREAM_TOOLS_MODEL_SHAPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace coldstream {

enum class ModelArch { kLlama, kQwen2, kCommandR };

// "llama", "qwen2", "command-r": the value of general.architecture.
const char* ArchName(ModelArch arch);

struct ModelShape {
  std::string name;
  ModelArch arch = ModelArch::kLlama;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t ffn = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab = 0;
  int64_t context = 0;
  bool tied = false;  // the head is the embedding
  double rope_base = 0;
  double norm_eps = 1e-5;
  std::optional<double> logit_scale =
      std::nullopt;  // command-r multiplies its logits
};

// What the user gave; the rest comes from the preset or from the defaults.
struct ShapeRequest {
  std::string preset = {};
  std::optional<ModelArch> arch = std::nullopt;
  std::optional<int64_t> layers = std::nullopt;
  std::optional<int64_t> hidden = std::nullopt;
  std::optional<int64_t> ffn = std::nullopt;
  std::optional<int64_t> heads = std::nullopt;
  std::optional<int64_t> kv_heads = std::nullopt;
  std::optional<int64_t> head_dim = std::nullopt;
  std::optional<int64_t> vocab = std::nullopt;
  std::optional<int64_t> context = std::nullopt;
  std::optional<bool> tied = std::nullopt;
  std::optional<double> rope_base = std::nullopt;
};

// Names for --preset.
std::vector<std::string> PresetNames();

// The shape asked for. Without a preset: layers, hidden, heads and ffn must be
// given; kv_heads defaults to heads, head_dim to hidden / heads, the rest to
// what the architecture's models usually have. A preset's head_dim and kv_heads
// follow --hidden and --heads where those are changed and these are not.
// Errors: InvalidArgument naming the option (unknown preset, missing dimension,
// heads that do not divide, a vocabulary too small for a tokenizer).
StatusOr<ModelShape> ResolveShape(const ShapeRequest& request);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_MODEL_SHAPE_H_
