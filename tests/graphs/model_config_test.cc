#include "graphs/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

StatusOr<ModelConfig> ConfigOf(const TinyModelOptions& options) {
  const TempDir dir;
  RETURN_IF_ERROR(WriteTinyModel(dir.Path("m.gguf"), options));
  ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                   Checkpoint::Open(dir.Path("m.gguf")));
  return LoadModelConfig(checkpoint);
}

TEST(ModelConfigTest, ReadsTheShapeOfAModel) {
  const auto config = ConfigOf({.layers = 5, .head_dim = 32});
  ASSERT_THAT(config.status(), IsOk());
  EXPECT_EQ(config->architecture->name, "llama");
  EXPECT_EQ(config->layer_count(), 5);
  EXPECT_EQ(config->hidden, 64);
  EXPECT_EQ(config->vocab_rows, 300);
  EXPECT_EQ(config->layers[4].key_dim, 32);  // wider than hidden / heads
  EXPECT_EQ(config->max_q_width(), 4 * 32);
  EXPECT_EQ(config->rope.rot_dim, 32);
}

TEST(ModelConfigTest, PerLayerCountsMayBeArraysOfTheRightLength) {
  TinyModelOptions options{.layers = 3};
  const std::string key = "llama.attention.head_count_kv";
  options.metadata[key] = std::vector<uint32_t>{1, 2, 4};
  const auto config = ConfigOf(options);
  ASSERT_THAT(config.status(), IsOk());
  EXPECT_EQ(config->layers[0].kv_heads, 1);
  EXPECT_EQ(config->layers[2].kv_heads, 4);
  options.metadata[key] = std::vector<uint32_t>{1, 2};
  EXPECT_THAT(ConfigOf(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(key)));
}

TEST(ModelConfigTest, ZeroAndAbsurdValuesNameTheirKey) {
  for (const char* suffix :
       {"block_count", "context_length", "embedding_length",
        "feed_forward_length", "attention.head_count",
        "attention.head_count_kv", "attention.key_length",
        "attention.value_length"}) {
    for (uint32_t value : {0u, 0xffffffffu}) {
      TinyModelOptions options;
      options.metadata[std::string("llama.") + suffix] = value;
      EXPECT_THAT(
          ConfigOf(options).status(),
          StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(suffix)))
          << value;
    }
  }
}

TEST(ModelConfigTest, AMissingKeyIsNamed) {
  for (const char* key :
       {"llama.block_count", "llama.context_length", "llama.embedding_length",
        "llama.attention.head_count", "llama.feed_forward_length",
        "llama.attention.layer_norm_rms_epsilon", "general.architecture"}) {
    TinyModelOptions options;
    options.without = {key};
    EXPECT_THAT(ConfigOf(options).status(),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(key)));
  }
}

TEST(ModelConfigTest, HeadsMustBeAMultipleOfKvHeads) {
  EXPECT_THAT(
      ConfigOf({.kv_heads = 3}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kv heads")));
}

TEST(ModelConfigTest, UnknownArchitecturesAreNamedWithTheKnownOnes) {
  EXPECT_THAT(ConfigOf({.architecture = "mamba"}).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("mamba"), HasSubstr("qwen2"))));
}

TEST(ModelConfigTest, FeaturesThatWouldChangeTheResultAreRefused) {
  for (const char* suffix : {"expert_count", "attention.sliding_window"}) {
    TinyModelOptions options;
    const std::string key = std::string("llama.") + suffix;
    options.metadata[key] = uint32_t{8};
    EXPECT_THAT(ConfigOf(options).status(),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(key)));
    options.metadata[key] = uint32_t{0};
    EXPECT_THAT(ConfigOf(options).status(), IsOk());
  }
}

TEST(ModelConfigTest, RopeScalingIsReadOrRefusedNeverIgnored) {
  TinyModelOptions options;
  options.metadata["llama.rope.scaling.type"] = std::string("yarn");
  options.metadata["llama.rope.scaling.factor"] = 4.0f;
  options.metadata["llama.rope.scaling.original_context_length"] =
      uint32_t{128};
  auto config = ConfigOf(options);
  ASSERT_THAT(config.status(), IsOk());
  EXPECT_EQ(config->rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(config->rope.factor, 4);
  EXPECT_EQ(config->rope.original_context, 128);

  options.metadata["llama.rope.scaling.type"] = std::string("longrope");
  EXPECT_THAT(ConfigOf(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("longrope"), HasSubstr("yarn"))));
}

TEST(ModelConfigTest, TheRotatedWidthMustFitTheHead) {
  for (uint32_t rotated : {7u, 18u}) {
    TinyModelOptions options;  // heads of 16
    options.metadata["llama.rope.dimension_count"] = rotated;
    EXPECT_THAT(ConfigOf(options).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("rope.dimension_count")));
  }
}

}  // namespace
}  // namespace coldstream
