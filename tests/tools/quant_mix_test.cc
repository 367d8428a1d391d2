#include "tools/quant_mix.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

QuantMix Mix(const char* name) { return *QuantMix::FromName(name); }

std::vector<int64_t> LayersOf(DType type, const QuantMix& mix, WeightRole role,
                              int64_t layers) {
  std::vector<int64_t> found;
  for (int64_t layer = 0; layer < layers; ++layer)
    if (mix.TypeFor({.role = role, .layer = layer, .layers = layers}) == type)
      found.push_back(layer);
  return found;
}

TEST(QuantMixTest, AnyOneTypeIsUsedForEveryMatrix) {
  for (const DTypeInfo& info : AllDTypes()) {
    const QuantMix mix = Mix(info.name);
    for (const WeightRole role :
         {WeightRole::kEmbedding, WeightRole::kHead, WeightRole::kAttentionV,
          WeightRole::kFfnDown, WeightRole::kAttentionOutput})
      EXPECT_EQ(mix.TypeFor({.role = role, .layers = 80}), info.type);
  }
}

// The layers are those of Meta-Llama-3-8B Q4_K_M files.
TEST(QuantMixTest, Q4KMGivesQ6KToHalfOfTheLayersVAndDown) {
  const QuantMix mix = Mix("Q4_K_M");
  for (const WeightRole role : {WeightRole::kAttentionV, WeightRole::kFfnDown})
    EXPECT_THAT(
        LayersOf(DType::kQ6_K, mix, role, 32),
        ElementsAre(0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31));
  for (const WeightRole role :
       {WeightRole::kAttentionQk, WeightRole::kAttentionOutput,
        WeightRole::kFfnGateUp})
    EXPECT_EQ(LayersOf(DType::kQ4_K, mix, role, 32).size(), 32u);
  EXPECT_EQ(mix.TypeFor({.role = WeightRole::kHead}), DType::kQ6_K);
  EXPECT_EQ(mix.TypeFor({.role = WeightRole::kEmbedding}), DType::kQ4_K);
  EXPECT_EQ(mix.file_type(), 15u);
}

TEST(QuantMixTest, Q5KMFollowsTheSameRuleFromQ5K) {
  const QuantMix mix = Mix("q5_k_m");
  EXPECT_EQ(LayersOf(DType::kQ6_K, mix, WeightRole::kFfnDown, 32).size(), 16u);
  EXPECT_EQ(LayersOf(DType::kQ5_K, mix, WeightRole::kFfnDown, 32).size(), 16u);
  EXPECT_EQ(mix.TypeFor({.role = WeightRole::kEmbedding}), DType::kQ5_K);
  EXPECT_EQ(mix.file_type(), 17u);
}

TEST(QuantMixTest, Q3KMRaisesVDownAndOutput) {
  const QuantMix mix = Mix("q3_k_m");
  EXPECT_THAT(LayersOf(DType::kQ5_K, mix, WeightRole::kAttentionV, 32),
              ElementsAre(0, 1));
  EXPECT_THAT(LayersOf(DType::kQ5_K, mix, WeightRole::kFfnDown, 32),
              ElementsAre(0, 1));
  EXPECT_EQ(LayersOf(DType::kQ4_K, mix, WeightRole::kFfnDown, 32).size(), 30u);
  EXPECT_EQ(
      LayersOf(DType::kQ4_K, mix, WeightRole::kAttentionOutput, 32).size(),
      32u);
  EXPECT_EQ(LayersOf(DType::kQ3_K, mix, WeightRole::kAttentionQk, 32).size(),
            32u);
  EXPECT_EQ(mix.file_type(), 12u);
}

TEST(QuantMixTest, TheSmallVOfA70BModelGetsAtLeastQ5K) {
  const auto type = [](const char* name, int64_t layer) {
    return Mix(name).TypeFor({.role = WeightRole::kAttentionV,
                              .layer = layer,
                              .layers = 80,
                              .heads_per_kv_head = 8});
  };
  EXPECT_EQ(type("q4_k_m", 0), DType::kQ6_K);
  EXPECT_EQ(type("q4_k_m", 10), DType::kQ5_K);
  EXPECT_EQ(type("q3_k_m", 10), DType::kQ5_K);
  EXPECT_EQ(type("q4_k", 10), DType::kQ4_K);
}

TEST(QuantMixTest, AnUnknownNameIsRefusedWithTheNames) {
  const StatusOr<QuantMix> mix = QuantMix::FromName("q9_k");
  ASSERT_FALSE(mix.ok());
  EXPECT_THAT(MessageOf(mix.status()), HasSubstr("'q9_k'"));
  EXPECT_THAT(MessageOf(mix.status()), HasSubstr("q4_k_m"));
  EXPECT_THAT(MessageOf(mix.status()), HasSubstr("mxfp4"));
}

TEST(QuantMixTest, RowsThatAreNoWholeBlocksFallBack) {
  const struct {
    DType type;
    DType fallback;
  } kCases[] = {
      {DType::kQ2_K, DType::kIQ4_NL}, {DType::kQ3_K, DType::kIQ4_NL},
      {DType::kQ4_K, DType::kQ5_0},   {DType::kQ5_K, DType::kQ5_1},
      {DType::kQ6_K, DType::kQ8_0},   {DType::kIQ4_XS, DType::kIQ4_NL},
      {DType::kQ4_0, DType::kQ4_0},   {DType::kF16, DType::kF16},
  };
  for (const auto& [type, fallback] : kCases) {
    EXPECT_EQ(FallbackFor(type, 512), type);
    EXPECT_EQ(FallbackFor(type, 896), fallback) << InfoOf(type).name;
    EXPECT_EQ(FallbackFor(type, 100), DType::kF16) << InfoOf(type).name;
  }
  EXPECT_EQ(FallbackFor(DType::kF32, 7), DType::kF32);
  EXPECT_EQ(FallbackFor(DType::kBF16, 7), DType::kBF16);
}

}  // namespace
}  // namespace coldstream
