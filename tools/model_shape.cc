#include "tools/model_shape.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "tools/synth_tokenizer.h"

namespace coldstream {
namespace {

// Source: config.json of the models named.
const std::vector<ModelShape>& Presets() {
  using enum ModelArch;
  static const auto* const kPresets = new std::vector<ModelShape>{
      {.name = "tinyllama-1.1b",
       .arch = kLlama,
       .layers = 22,
       .hidden = 2048,
       .ffn = 5632,
       .heads = 32,
       .kv_heads = 4,
       .head_dim = 64,
       .vocab = 32000,
       .context = 2048,
       .rope_base = 10000},
      {.name = "llama3-8b",
       .arch = kLlama,
       .layers = 32,
       .hidden = 4096,
       .ffn = 14336,
       .heads = 32,
       .kv_heads = 8,
       .head_dim = 128,
       .vocab = 128256,
       .context = 8192,
       .rope_base = 500000},
      {.name = "qwen2.5-14b",
       .arch = kQwen2,
       .layers = 48,
       .hidden = 5120,
       .ffn = 13824,
       .heads = 40,
       .kv_heads = 8,
       .head_dim = 128,
       .vocab = 152064,
       .context = 32768,
       .rope_base = 1e6},
      {.name = "qwen2.5-32b",
       .arch = kQwen2,
       .layers = 64,
       .hidden = 5120,
       .ffn = 27648,
       .heads = 40,
       .kv_heads = 8,
       .head_dim = 128,
       .vocab = 152064,
       .context = 32768,
       .rope_base = 1e6},
      {.name = "llama3-70b",
       .arch = kLlama,
       .layers = 80,
       .hidden = 8192,
       .ffn = 28672,
       .heads = 64,
       .kv_heads = 8,
       .head_dim = 128,
       .vocab = 128256,
       .context = 8192,
       .rope_base = 500000},
      {.name = "command-r-35b",
       .arch = kCommandR,
       .layers = 40,
       .hidden = 8192,
       .ffn = 22528,
       .heads = 64,
       .kv_heads = 64,
       .head_dim = 128,
       .vocab = 256000,
       .context = 131072,
       .tied = true,
       .rope_base = 8e6,
       .logit_scale = 0.0625},
  };
  return *kPresets;
}

// What a model without a preset has where nothing is said.
ModelShape DefaultsFor(ModelArch arch) {
  ModelShape shape{.name = "synth",
                   .arch = arch,
                   .vocab = 32000,
                   .context = 2048,
                   .rope_base = 10000};
  if (arch == ModelArch::kQwen2) shape.rope_base = 1e6;
  if (arch == ModelArch::kCommandR) {
    shape.tied = true;
    shape.rope_base = 8e6;
    shape.logit_scale = 0.0625;
  }
  return shape;
}

Status Missing(const char* option) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is missing: give --preset, or all of --layers, --hidden, --heads and "
      "--ffn",
      option));
}

StatusOr<ModelShape> StartingPoint(const ShapeRequest& request) {
  if (request.preset.empty()) {
    if (!request.layers) return Missing("--layers");
    if (!request.hidden) return Missing("--hidden");
    if (!request.heads) return Missing("--heads");
    if (!request.ffn) return Missing("--ffn");
    return DefaultsFor(request.arch.value_or(ModelArch::kLlama));
  }
  for (const ModelShape& preset : Presets()) {
    if (preset.name != request.preset) continue;
    ModelShape shape = preset;
    // Another architecture with a preset's dimensions: its own constants.
    if (request.arch && *request.arch != preset.arch) {
      const ModelShape defaults = DefaultsFor(*request.arch);
      shape.arch = defaults.arch;
      shape.tied = defaults.tied;
      shape.rope_base = defaults.rope_base;
      shape.logit_scale = defaults.logit_scale;
    }
    return shape;
  }
  std::string names;
  for (const std::string& name : PresetNames())
    names += (names.empty() ? "" : ", ") + name;
  return absl::InvalidArgumentError(
      absl::StrFormat("--preset: unknown preset '%s', expected one of: %s",
                      request.preset, names));
}

Status CheckShape(const ModelShape& shape) {
  if (shape.heads % shape.kv_heads != 0)
    return absl::InvalidArgumentError(
        absl::StrFormat("--kv-heads: %d heads are no multiple of %d KV heads",
                        shape.heads, shape.kv_heads));
  if (shape.head_dim % 2 != 0)
    return absl::InvalidArgumentError(absl::StrFormat(
        "--head-dim: %d is odd, RoPE rotates pairs", shape.head_dim));
  if (shape.vocab < kMinSynthVocab || shape.vocab > kMaxSynthVocab)
    return absl::InvalidArgumentError(absl::StrFormat(
        "--vocab: expected %d (256 bytes and the control tokens) to %d, got %d",
        kMinSynthVocab, kMaxSynthVocab, shape.vocab));
  return absl::OkStatus();
}

}  // namespace

const char* ArchName(ModelArch arch) {
  switch (arch) {
    case ModelArch::kLlama:
      return "llama";
    case ModelArch::kQwen2:
      return "qwen2";
    case ModelArch::kCommandR:
      return "command-r";
  }
  CHECK(false);
}

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const ModelShape& preset : Presets()) names.push_back(preset.name);
  return names;
}

StatusOr<ModelShape> ResolveShape(const ShapeRequest& request) {
  ASSIGN_OR_RETURN(ModelShape shape, StartingPoint(request));
  shape.layers = request.layers.value_or(shape.layers);
  shape.hidden = request.hidden.value_or(shape.hidden);
  shape.ffn = request.ffn.value_or(shape.ffn);
  shape.vocab = request.vocab.value_or(shape.vocab);
  shape.context = request.context.value_or(shape.context);
  shape.tied = request.tied.value_or(shape.tied);
  shape.rope_base = request.rope_base.value_or(shape.rope_base);
  if (request.heads) {
    shape.heads = *request.heads;
    const bool preset_fits =
        shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0;
    if (!preset_fits) shape.kv_heads = shape.heads;
  }
  shape.kv_heads = request.kv_heads.value_or(shape.kv_heads);
  if (request.head_dim) {
    shape.head_dim = *request.head_dim;
  } else if (request.hidden || request.heads) {
    if (shape.hidden % shape.heads != 0)
      return absl::InvalidArgumentError(absl::StrFormat(
          "--hidden: %d is no multiple of %d heads; give --head-dim",
          shape.hidden, shape.heads));
    shape.head_dim = shape.hidden / shape.heads;
  }
  RETURN_IF_ERROR(CheckShape(shape));
  return shape;
}

}  // namespace coldstream
