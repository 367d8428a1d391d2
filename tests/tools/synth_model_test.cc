#include "tools/synth_model.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SynthModel Describe(const ShapeRequest& request, const char* type) {
  return DescribeSynthModel(*ResolveShape(request), *QuantMix::FromName(type));
}

std::vector<std::string> NamesOf(const SynthModel& model) {
  std::vector<std::string> names;
  for (const SynthTensor& tensor : model.tensors) names.push_back(tensor.name);
  return names;
}

const SynthTensor& Find(const SynthModel& model, const std::string& name) {
  const auto found = std::ranges::find(model.tensors, name, &SynthTensor::name);
  EXPECT_NE(found, model.tensors.end()) << name;
  return *found;
}

constexpr auto kOneLayer = [](ModelArch arch) {
  return ShapeRequest{.arch = arch,
                      .layers = 1,
                      .hidden = 64,
                      .ffn = 96,
                      .heads = 4,
                      .kv_heads = 2};
};

TEST(SynthModelTest, ALlamaLayerHasItsAttentionTogetherAndThenItsFfn) {
  EXPECT_THAT(NamesOf(Describe(kOneLayer(ModelArch::kLlama), "f16")),
              ElementsAre("token_embd.weight", "blk.0.attn_norm.weight",
                          "blk.0.attn_q.weight", "blk.0.attn_k.weight",
                          "blk.0.attn_v.weight", "blk.0.attn_output.weight",
                          "blk.0.ffn_norm.weight", "blk.0.ffn_gate.weight",
                          "blk.0.ffn_up.weight", "blk.0.ffn_down.weight",
                          "output_norm.weight", "output.weight"));
}

TEST(SynthModelTest, Qwen2HasBiasesOnQKAndV) {
  const SynthModel model = Describe(kOneLayer(ModelArch::kQwen2), "q8_0");
  for (const char* name :
       {"blk.0.attn_q.bias", "blk.0.attn_k.bias", "blk.0.attn_v.bias"})
    EXPECT_EQ(Find(model, name).type, DType::kF32);
  EXPECT_THAT(Find(model, "blk.0.attn_q.bias").shape, ElementsAre(64));
  EXPECT_THAT(Find(model, "blk.0.attn_k.bias").shape, ElementsAre(32));
}

TEST(SynthModelTest, CommandRHasNeitherFfnNormNorHead) {
  EXPECT_THAT(NamesOf(Describe(kOneLayer(ModelArch::kCommandR), "f16")),
              ElementsAre("token_embd.weight", "blk.0.attn_norm.weight",
                          "blk.0.attn_q.weight", "blk.0.attn_k.weight",
                          "blk.0.attn_v.weight", "blk.0.attn_output.weight",
                          "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight",
                          "blk.0.ffn_down.weight", "output_norm.weight"));
}

TEST(SynthModelTest, ShapesAreRowLengthFirst) {
  ShapeRequest request = kOneLayer(ModelArch::kLlama);
  request.head_dim = 32;
  request.vocab = 300;
  const SynthModel model = Describe(request, "f16");
  EXPECT_THAT(Find(model, "token_embd.weight").shape, ElementsAre(64, 300));
  EXPECT_THAT(Find(model, "blk.0.attn_q.weight").shape, ElementsAre(64, 128));
  EXPECT_THAT(Find(model, "blk.0.attn_v.weight").shape, ElementsAre(64, 64));
  EXPECT_THAT(Find(model, "blk.0.attn_output.weight").shape,
              ElementsAre(128, 64));
  EXPECT_THAT(Find(model, "blk.0.ffn_up.weight").shape, ElementsAre(64, 96));
  EXPECT_THAT(Find(model, "blk.0.ffn_down.weight").shape, ElementsAre(96, 64));
}

// Parameter counts as the models' makers publish them.
TEST(SynthModelTest, PresetsHaveTheParametersOfTheModelsTheyAreNamedAfter) {
  const struct {
    const char* preset;
    double billions;
  } kCases[] = {
      {"tinyllama-1.1b", 1.10}, {"llama3-8b", 8.03},   {"qwen2.5-14b", 14.77},
      {"qwen2.5-32b", 32.76},   {"llama3-70b", 70.55}, {"command-r-35b", 34.98},
  };
  for (const auto& [preset, billions] : kCases) {
    const SynthModel model = Describe({.preset = preset}, "f16");
    double parameters = 0;
    for (const SynthTensor& tensor : model.tensors) {
      double elements = 1;
      for (const uint64_t n : tensor.shape) elements *= static_cast<double>(n);
      parameters += elements;
    }
    EXPECT_NEAR(parameters / 1e9, billions, 0.005) << preset;
  }
}

// The tensor bytes of published Meta-Llama-3-8B Q4_K_M files: 4.92 GB less the
// tokenizer.
TEST(SynthModelTest, Llama3AtQ4KMIsAsLargeAsTheRealFile) {
  const SynthModel model = Describe({.preset = "llama3-8b"}, "q4_k_m");
  EXPECT_NEAR(static_cast<double>(model.tensor_bytes()) / 1e9, 4.913, 0.002);
  EXPECT_THAT(model.fallbacks, IsEmpty());
}

TEST(SynthModelTest, TheTiedEmbeddingHasTheTypeOfAHead) {
  const SynthModel model = Describe({.preset = "command-r-35b"}, "q4_k_m");
  EXPECT_EQ(Find(model, "token_embd.weight").type, DType::kQ6_K);
}

TEST(SynthModelTest, OddRowsFallBackWithOneLineForEachKind) {
  ShapeRequest request{.layers = 4, .hidden = 896, .ffn = 512, .heads = 14};
  const SynthModel model = Describe(request, "q4_k_m");
  EXPECT_EQ(Find(model, "blk.0.attn_q.weight").type, DType::kQ5_0);
  EXPECT_EQ(Find(model, "output.weight").type, DType::kQ8_0);
  EXPECT_EQ(Find(model, "blk.1.ffn_down.weight").type, DType::kQ4_K);
  ASSERT_EQ(model.fallbacks.size(), 2u);
  EXPECT_THAT(model.fallbacks[0], HasSubstr("896"));
}

TEST(SynthModelTest, NamesAreNeverRepeated) {
  for (const std::string& preset : PresetNames()) {
    const std::vector<std::string> names =
        NamesOf(Describe({.preset = preset}, "q4_0"));
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(),
              names.size());
  }
}

}  // namespace
}  // namespace coldstream
