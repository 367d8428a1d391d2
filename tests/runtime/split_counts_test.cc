#include "runtime/split_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "runtime/model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

constexpr int64_t kLayers = 8;

class SplitCountsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = dir_.Path("model.gguf");
    ASSERT_THAT(WriteTinyModel(path, {.layers = kLayers}), IsOk());
    auto model = Model::Open({.path = path, .unit_bytes = 6000});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *model;
  }

  // A letter a half: c of the CPU, d of the device; attention, FFN by layer,
  // the head. Halves that are split between the two are '?'.
  std::string Halves(const SplitCounts& counts, Phase phase) const {
    const WeightMap& weights = model_->weights();
    const Placement placement = PlaceHalves(weights, kLayers, counts);
    std::string halves(2 * kLayers + 1, ' ');
    for (size_t unit = 1; unit < weights.units.size(); ++unit) {
      const MatrixRows& rows = weights.matrices[unit].front();
      auto half = static_cast<size_t>(2 * rows.layer);
      if (rows.kind >= MatrixKind::kGate) ++half;
      if (rows.kind == MatrixKind::kHead) half = 2 * kLayers;
      const char side =
          placement.OnCpu(static_cast<int>(unit), phase) ? 'c' : 'd';
      char& letter = halves[half];
      letter = letter == ' ' || letter == side ? side : '?';
    }
    return halves;
  }

  TempDir dir_;
  std::shared_ptr<const Model> model_;
};

TEST_F(SplitCountsTest, TheFirstLayersAreTheCpus) {
  for (const Phase phase : kPhases) {
    EXPECT_EQ(Halves({.layers = 0}, phase), "ddddddddddddddddd");
    EXPECT_EQ(Halves({.layers = 3}, phase), "ccccccddddddddddd");
    EXPECT_EQ(Halves({.layers = 8}, phase), "ccccccccccccccccd");
  }
}

TEST_F(SplitCountsTest, FfnsAreSpreadOverTheLayersBehindThem) {
  const auto decode = [&](int64_t layers, int64_t ffn) {
    return Halves({.layers = layers, .ffn = ffn}, Phase::kDecode);
  };
  EXPECT_EQ(decode(0, 1), "dddddddddcddddddd");
  EXPECT_EQ(decode(0, 2), "dddddcdddddddcddd");
  EXPECT_EQ(decode(0, 4), "dddcdddcdddcdddcd");
  EXPECT_EQ(decode(0, 8), "dcdcdcdcdcdcdcdcd");
  EXPECT_EQ(decode(4, 2), "ccccccccdddcdddcd");
}

TEST_F(SplitCountsTest, TheFewerFfnsOfAPhaseAreAmongThoseOfTheOther) {
  for (int64_t layers : {0, 1, 5}) {
    for (int64_t ffn = 0; ffn <= kLayers - layers; ++ffn) {
      for (int64_t prefill = 0; prefill <= kLayers - layers; ++prefill) {
        const SplitCounts counts = {layers, ffn, prefill};
        const std::string a = Halves(counts, Phase::kDecode);
        const std::string b = Halves(counts, Phase::kPrefill);
        const auto count = [](const std::string& halves) {
          return std::count(halves.begin(), halves.end(), 'c');
        };
        ASSERT_EQ(count(a), 2 * layers + ffn);
        ASSERT_EQ(count(b), 2 * layers + prefill);
        int64_t in_both = 0;
        for (size_t i = 0; i < a.size(); ++i)
          in_both += a[i] == 'c' && b[i] == 'c';
        EXPECT_EQ(in_both, 2 * layers + std::min(ffn, prefill));
      }
    }
  }
}

TEST_F(SplitCountsTest, NothingOnTheCpuIsNoPlacement) {
  EXPECT_TRUE(
      PlaceHalves(model_->weights(), kLayers, {}).of(Phase::kDecode).empty());
}

TEST_F(SplitCountsTest, OptionsThatAskForCountsGiveThem) {
  for (int64_t layers : {0, 3, 8}) {
    EngineOptions options;
    SetSplit({layers, 8 - layers, 0}, kLayers, &options);
    const auto choice = AskedSplit(options, kLayers);
    ASSERT_THAT(choice.status(), IsOk());
    EXPECT_EQ(choice->counts.layers, layers);
    EXPECT_EQ(choice->counts.ffn, 8 - layers);
    EXPECT_EQ(choice->counts.ffn_prefill, 0);
    EXPECT_EQ(choice->layers, SplitSource::kForced);
    EXPECT_EQ(choice->ffn, SplitSource::kForced);
    EXPECT_EQ(choice->ffn_prefill, SplitSource::kForced);
  }
}

TEST_F(SplitCountsTest, WhatIsNotAskedForIsForcedByNobody) {
  EngineOptions options;
  options.cpu_ffn = 2;
  const auto choice = AskedSplit(options, kLayers);
  ASSERT_THAT(choice.status(), IsOk());
  EXPECT_EQ(choice->layers, SplitSource::kDefault);
  EXPECT_EQ(choice->ffn, SplitSource::kForced);
  // As many, where nothing is known.
  EXPECT_EQ(choice->ffn_prefill, SplitSource::kForced);
  EXPECT_EQ(AskedSplit({}, kLayers)->ffn, SplitSource::kDefault);
}

}  // namespace
}  // namespace coldstream
