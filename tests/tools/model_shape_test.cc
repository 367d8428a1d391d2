#include "tools/model_shape.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tools/synth_tokenizer.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;

TEST(ModelShapeTest, EveryPresetResolvesToItself) {
  for (const std::string& name : PresetNames()) {
    const StatusOr<ModelShape> shape = ResolveShape({.preset = name});
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(shape->name, name);
    EXPECT_EQ(shape->heads * shape->head_dim, shape->hidden);
  }
}

TEST(ModelShapeTest, APresetIsChangedOnlyWhereSomethingIsGiven) {
  const StatusOr<ModelShape> shape = ResolveShape(
      {.preset = "llama3-8b", .layers = 2, .vocab = 1000, .tied = true});
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->layers, 2);
  EXPECT_EQ(shape->vocab, 1000);
  EXPECT_TRUE(shape->tied);
  EXPECT_EQ(shape->hidden, 4096);
  EXPECT_EQ(shape->kv_heads, 8);
  EXPECT_EQ(shape->head_dim, 128);
  EXPECT_EQ(shape->rope_base, 500000);
}

TEST(ModelShapeTest, HeadSizeFollowsAChangedHiddenSize) {
  const StatusOr<ModelShape> shape =
      ResolveShape({.preset = "llama3-8b", .hidden = 1024});
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->head_dim, 32);
}

TEST(ModelShapeTest, ExplicitDimensionsNeedNoPreset) {
  const StatusOr<ModelShape> shape =
      ResolveShape({.layers = 3, .hidden = 64, .ffn = 96, .heads = 4});
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->arch, ModelArch::kLlama);
  EXPECT_EQ(shape->kv_heads, 4);
  EXPECT_EQ(shape->head_dim, 16);
  EXPECT_FALSE(shape->tied);
}

TEST(ModelShapeTest, HeadsMayBeWiderThanTheirShareOfTheHiddenSize) {
  const StatusOr<ModelShape> shape = ResolveShape({.layers = 1,
                                                   .hidden = 100,
                                                   .ffn = 96,
                                                   .heads = 3,
                                                   .kv_heads = 1,
                                                   .head_dim = 64});
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->head_dim, 64);
}

TEST(ModelShapeTest, CommandRIsTiedAndScalesItsLogits) {
  const StatusOr<ModelShape> shape = ResolveShape({.arch = ModelArch::kCommandR,
                                                   .layers = 1,
                                                   .hidden = 64,
                                                   .ffn = 96,
                                                   .heads = 4});
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_TRUE(shape->tied);
  EXPECT_EQ(shape->logit_scale, 0.0625);
}

TEST(ModelShapeTest, ImpossibleRequestsNameTheOption) {
  const struct {
    ShapeRequest request;
    const char* expected;
  } kCases[] = {
      {{}, "--layers is missing"},
      {{.layers = 1, .hidden = 64, .heads = 4}, "--ffn is missing"},
      {{.preset = "gpt-5"}, "unknown preset 'gpt-5'"},
      {{.preset = "llama3-8b", .kv_heads = 5}, "--kv-heads"},
      {{.preset = "llama3-8b", .hidden = 1000}, "--hidden"},
      {{.preset = "llama3-8b", .head_dim = 63}, "--head-dim"},
      {{.preset = "llama3-8b", .vocab = kMinSynthVocab - 1}, "--vocab"},
      {{.preset = "llama3-8b", .vocab = kMaxSynthVocab + 1}, "--vocab"},
  };
  for (const auto& [request, expected] : kCases)
    EXPECT_THAT(
        ResolveShape(request),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(expected)));
}

}  // namespace
}  // namespace coldstream
