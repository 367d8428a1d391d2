#include "runtime/split_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "runtime/automatic_settings.h"
#include "runtime/rate_finder.h"
#include "tests/support/deferred_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

// A model of which half does not fit on the device.
class SplitSettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(
        WriteTinyModel(dir_.Path("m.gguf"),
                       {.layers = 4, .hidden = 128, .ffn = 512, .vocab = 400}),
        IsOk());
    auto model = Model::Open({.path = dir_.Path("m.gguf"), .unit_bytes = 6000});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *model;
    options_ = OnDeferredDevice(1);
    options_.context = 64;
    options_.batch_tokens = 16;
    options_.prefetch_depth = 2;
    const auto all = PlanEngine(*model_, options_);
    ASSERT_THAT(all.status(), IsOk());
    options_.vram_bytes = all->vram->total() - all->vram->resident_bytes / 2;
  }

  Profile Load() const {
    return Profile::Load({dir_.Path("profile.json"), "", true});
  }
  RateFinder Finder(Profile* profile, MeasureRates measure) const {
    return RateFinder(profile,
                      {.threads = 2, .gpu = options_.gpu, .measure = measure});
  }
  // Measures all there is to.
  Profile Measured() const {
    Profile profile = Load();
    RateFinder finder = Finder(&profile, MeasureRates::kMissing);
    EXPECT_THAT(finder.Cpu(*model_).status(), IsOk());
    EXPECT_THAT(finder.Device(*model_).status(), IsOk());
    EXPECT_THAT(finder.Upload().status(), IsOk());
    finder.Remember();
    return profile;
  }
  SplitRates Find(const EngineOptions& options, Profile* profile) const {
    const auto plan = PlanEngine(*model_, options);
    EXPECT_THAT(plan.status(), IsOk());
    const auto rates = FindSplitRates(*model_, options, *plan, profile);
    EXPECT_THAT(rates.status(), IsOk());
    return rates.value_or(SplitRates{});
  }

  TempDir dir_;
  std::shared_ptr<const Model> model_;
  EngineOptions options_;
};

TEST_F(SplitSettingsTest, WhatWasMeasuredIsFoundAgainWithoutMeasuring) {
  Profile profile = Load();
  RateFinder nothing = Finder(&profile, MeasureRates::kNone);
  EXPECT_EQ(nothing.Cpu(*model_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(nothing.Device(*model_).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(nothing.Upload().status().code(), absl::StatusCode::kNotFound);

  Profile measured = Measured();
  ASSERT_TRUE(measured.Save().written);
  profile = Load();
  RateFinder finder = Finder(&profile, MeasureRates::kNone);
  const auto cpu = finder.Cpu(*model_);
  ASSERT_THAT(cpu.status(), IsOk());
  EXPECT_GT(LayerRate(*model_, **cpu), 0);
  EXPECT_THAT(finder.Device(*model_).status(), IsOk());
  EXPECT_GT(*finder.Upload(), 0);
  // Every figure is the one that was kept.
  const ComputeRecord* const record =
      profile.FindCompute(ComputeRates::MachineKey(2));
  ASSERT_NE(record, nullptr);
  EXPECT_EQ((*finder.Cpu(*model_))->seconds(), record->rates);
}

TEST_F(SplitSettingsTest,
       LittleToUploadIsNotMeasuredForButRememberedRatesCount) {
  Profile empty = Load();
  EXPECT_FALSE(Find(options_, &empty).known());
  EXPECT_TRUE(empty.data().empty());

  Profile measured = Measured();
  const SplitRates rates = Find(options_, &measured);
  ASSERT_TRUE(rates.known());
  EXPECT_EQ(rates.disk, 0);
  RateFinder finder = Finder(&measured, MeasureRates::kNone);
  EXPECT_EQ(rates.upload, *finder.Upload());
  const auto cpu = finder.Cpu(*model_);
  ASSERT_THAT(cpu.status(), IsOk());
  EXPECT_EQ(rates.cpu, LayerRate(*model_, **cpu));
  EXPECT_EQ(rates.cpu_tokens, LayerTokenRate(*model_, **cpu));
}

TEST_F(SplitSettingsTest, NothingIsLookedUpWhereItCouldNotMatter) {
  Profile measured = Measured();
  EngineOptions forced = options_;
  forced.cpu_ffn = 1;
  EXPECT_TRUE(Find(forced, &measured).known());  // the prompt's is open
  forced.cpu_ffn_prefill = 0;
  EXPECT_FALSE(Find(forced, &measured).known());
  EngineOptions all = options_;
  all.vram_bytes = kPlenty;
  EXPECT_FALSE(Find(all, &measured).known());
  EngineOptions own = options_;
  own.split_rates = {.upload = 1, .cpu = 2, .device = 3, .cpu_tokens = 4};
  EXPECT_EQ(Find(own, &measured).device, 3);
}

TEST_F(SplitSettingsTest, TheSettingsOfARunHaveTheRates) {
  Profile measured = Measured();
  const auto settings = ChooseSettings(*model_, options_, {}, &measured);
  ASSERT_THAT(settings.status(), IsOk());
  EXPECT_EQ(settings->options.split_rates.cpu, Find(options_, &measured).cpu);
  // Where the CPU computes alone there are none.
  EngineOptions cpu = OnScalarCpu();
  cpu.context = 64;
  const auto none = ChooseSettings(*model_, cpu, {}, &measured);
  ASSERT_THAT(none.status(), IsOk());
  EXPECT_FALSE(none->options.split_rates.known());
}

// Seconds a byte of each type, weighed by its bytes; the head is no layer.
TEST_F(SplitSettingsTest, TheRateOfLayersIsThatOfTheirTypes) {
  const ComputeRates::Bench bench = {
      .weight_byte = [](DType, int64_t tokens) -> StatusOr<double> {
        return tokens == 1 ? 1e-9 : static_cast<double>(tokens) * 1e-10;
      },
      .attention_position = [](const LayerShape&, int64_t) -> StatusOr<double> {
        return 1.0;
      }};
  const auto rates = ComputeRates::MeasureWith(bench, *model_, {});
  ASSERT_THAT(rates.status(), IsOk());
  EXPECT_NEAR(LayerRate(*model_, *rates), 1e9, 1);
  EXPECT_NEAR(LayerTokenRate(*model_, *rates), 1e10, 10);
}

}  // namespace
}  // namespace coldstream
