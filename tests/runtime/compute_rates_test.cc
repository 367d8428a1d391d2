#include "runtime/compute_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

class ComputeRatesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(WriteTinyModel(dir_.Path("m.gguf"), {.layers = 3}), IsOk());
    auto model = Model::Open({.path = dir_.Path("m.gguf")});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *model;
  }

  TempDir dir_;
  std::shared_ptr<const Model> model_;
};

ComputeRates::Seconds KnownRates() {
  return {{"q8_0/1", 1e-9},
          {"q8_0/16", 4e-9},
          {"q8_0/128", 32e-9},
          {"attention/4x2x16x16/1", 1e-6},
          {"attention/4x2x16x16/128", 1e-6}};
}

TEST_F(ComputeRatesTest, WhatIsKnownIsNotMeasuredAgain) {
  const auto rates = ComputeRates::Measure(*model_, 1, KnownRates());
  ASSERT_THAT(rates.status(), IsOk());
  EXPECT_EQ(rates->seconds(), KnownRates());
}

TEST_F(ComputeRatesTest, RatesLieOnALineBetweenWhatWasMeasured) {
  const auto rates = ComputeRates::Measure(*model_, 1, KnownRates());
  ASSERT_THAT(rates.status(), IsOk());
  EXPECT_DOUBLE_EQ(rates->WeightByte(DType::kQ8_0, 1), 1e-9);
  EXPECT_DOUBLE_EQ(rates->WeightByte(DType::kQ8_0, 6), 2e-9);
  EXPECT_DOUBLE_EQ(rates->WeightByte(DType::kQ8_0, 16), 4e-9);
  EXPECT_DOUBLE_EQ(rates->WeightByte(DType::kQ8_0, 72), 18e-9);
  EXPECT_DOUBLE_EQ(rates->WeightByte(DType::kQ8_0, 256), 64e-9);
}

TEST_F(ComputeRatesTest, UnitsCostTheirBytesAndTheirAttention) {
  const auto rates = ComputeRates::Measure(*model_, 1, KnownRates());
  ASSERT_THAT(rates.status(), IsOk());
  const auto costs = UnitCosts(*model_, *rates, {.position = 9});
  ASSERT_EQ(costs.size(), model_->weights().units.size());
  double sum = 0;
  for (const UnitCost& cost : costs) sum += cost.compute_seconds;
  uint64_t vectors = model_->weights().units[0].weight_bytes();
  const double products =
      1e-9 * static_cast<double>(model_->weights().weight_bytes() - vectors);
  EXPECT_NEAR(sum, products + 3 * 10 * 1e-6, 1e-12);
  // Without logits the head costs nothing.
  const auto silent = UnitCosts(*model_, *rates, {.logit_rows = 0});
  EXPECT_EQ(silent.back().compute_seconds, 0);
}

TEST_F(ComputeRatesTest, MeasuredRatesAreThereForEveryTypeAndShape) {
  const auto rates = ComputeRates::Measure(*model_, 2);
  ASSERT_THAT(rates.status(), IsOk());
  EXPECT_EQ(rates->seconds().size(), KnownRates().size());
  for (const auto& [name, seconds] : rates->seconds()) {
    EXPECT_TRUE(KnownRates().contains(name)) << name;
    EXPECT_GT(seconds, 0) << name;
    EXPECT_LT(seconds, 1) << name;
  }
}

}  // namespace
}  // namespace coldstream
