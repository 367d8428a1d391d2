#include "runtime/device_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/deferred_device.h"
#include "tests/support/queued_pass_ops.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

class DeviceRatesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(WriteTinyModel(dir_.Path("m.gguf"), {.layers = 2}), IsOk());
    auto model = Model::Open({.path = dir_.Path("m.gguf")});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *model;
  }
  static ComputeDevice Gpu(const DeferredDeviceOptions& options = {}) {
    const auto create =
        [](Device*, Stream* stream,
           const PassLimits& limits) -> StatusOr<std::unique_ptr<PassOps>> {
      ASSIGN_OR_RETURN(const Ops* ops, SelectOps());
      return QueuedPassOps::CreateWith(ops, stream, limits);
    };
    const auto check = [](const PassLimits&) { return absl::OkStatus(); };
    return {CreateDeferredDevice(options), {create, &CpuPassOpsBytes, check}};
  }

  TempDir dir_;
  std::shared_ptr<const Model> model_;
};

// By the same names as the CPU's, so that UnitCosts finds all it needs.
TEST_F(DeviceRatesTest, EveryRateThatAModelNeedsIsMeasured) {
  if (kSanitized) GTEST_SKIP() << "measures for long under a sanitizer";
  const auto rates = MeasureDeviceRates(*model_, Gpu());
  ASSERT_THAT(rates.status(), IsOk());
  for (const auto& [name, seconds] : rates->seconds())
    EXPECT_GT(seconds, 0) << name;
  for (const int64_t tokens : {1, 16, 100, 512}) {
    double sum = 0;
    for (const UnitCost& cost : UnitCosts(*model_, *rates, {.tokens = tokens}))
      sum += cost.compute_seconds;
    EXPECT_GT(sum, 0) << tokens;
  }
}

TEST_F(DeviceRatesTest, WhatIsKnownIsNotMeasuredAgain) {
  const ComputeRates::Seconds known = {{"q8_0/1", 1e-9},
                                       {"q8_0/16", 4e-9},
                                       {"q8_0/128", 32e-9},
                                       {"attention/4x2x16x16/1", 1e-6},
                                       {"attention/4x2x16x16/128", 1e-6}};
  // No device would do for a measurement.
  const auto rates =
      MeasureDeviceRates(*model_, Gpu({.memory_bytes = 0}), known);
  ASSERT_THAT(rates.status(), IsOk());
  EXPECT_EQ(rates->seconds(), known);
}

TEST_F(DeviceRatesTest, ADeviceThatIsFullIsAnError) {
  EXPECT_THAT(MeasureDeviceRates(*model_, Gpu({.memory_bytes = 1 << 20})),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(DeviceRatesTest, AKernelThatFailsIsAnError) {
  EXPECT_THAT(
      MeasureDeviceRates(*model_, Gpu({.faults = {.fail_kernels_from = 3}})),
      StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace coldstream
