#include "scheduler/cost_model.h"

#include <gtest/gtest.h>

#include <random>

namespace coldstream {
namespace {

// `count` units of 10 bytes; the disk reads one in a second at 10 bytes/s.
std::vector<UnitCost> Units(int count, double compute_seconds) {
  return std::vector<UnitCost>(static_cast<size_t>(count),
                               {10, compute_seconds});
}

TEST(CostModelTest, AllResidentTakesTheComputationAlone) {
  const auto units = Units(8, 0.25);
  const std::vector<bool> resident(8, true);
  const PassPrediction pass =
      PredictPass({.units = units, .resident = resident, .slots = 2});
  EXPECT_DOUBLE_EQ(pass.seconds, 2.0);
  EXPECT_EQ(pass.disk_seconds, 0);
  EXPECT_EQ(pass.binding(), Link::kCompute);
}

TEST(CostModelTest, ASlowDiskIsTheOnlyLimit) {
  const auto units = Units(8, 0.1);
  const std::vector<bool> resident(8, false);
  const PassPrediction pass = PredictPass({.units = units,
                                           .resident = resident,
                                           .slots = 2,
                                           .disk_bytes_per_second = 10});
  EXPECT_NEAR(pass.seconds, 8.0, 1e-9);
  EXPECT_EQ(pass.binding(), Link::kDisk);
}

// With one slot a read can only begin when the unit before it is done with.
TEST(CostModelTest, OneSlotAddsReadingAndComputing) {
  const auto units = Units(8, 0.5);
  const std::vector<bool> resident(8, false);
  const PassPrediction pass = PredictPass({.units = units,
                                           .resident = resident,
                                           .slots = 1,
                                           .disk_bytes_per_second = 10});
  EXPECT_NEAR(pass.seconds, 8 * 1.5, 1e-9);
}

TEST(CostModelTest, TheFirstPassReadsTheResidentUnitsToo) {
  const auto units = Units(8, 0.1);
  const std::vector<bool> resident(8, true);
  const PassPrediction pass = PredictFirstPass({.units = units,
                                                .resident = resident,
                                                .slots = 2,
                                                .disk_bytes_per_second = 10});
  EXPECT_NEAR(pass.disk_seconds, 8.0, 1e-9);
  EXPECT_NEAR(pass.seconds, 8.1, 1e-9);
}

// Half of the pass the disk is busy, and computing a fifth slower.
TEST(CostModelTest, ComputingIsSlowerWhileTheDiskIsBusy) {
  const auto units = Units(8, 2.2 / 1.1);
  const std::vector<bool> resident(8, false);
  PassShape shape{.units = units,
                  .resident = resident,
                  .slots = 4,
                  .disk_bytes_per_second = 10};
  const double alone = PredictPass(shape).seconds;
  EXPECT_NEAR(alone, 16.0, 1e-9);
  shape.contention.compute = 1.2;
  const PassPrediction beside = PredictPass(shape);
  EXPECT_NEAR(beside.seconds,
              alone * (1 + 0.2 * beside.disk_seconds / beside.seconds), 1e-3);
  // A pass that the disk limits takes no longer for it.
  const auto light = Units(8, 0.1);
  shape.units = light;
  EXPECT_NEAR(PredictPass(shape).seconds, 8.0, 1e-9);
  // The disk is slowed by the square of the share in which there is computing.
  shape.contention = {.compute = 1, .disk = 1.5};
  const PassPrediction slowed = PredictPass(shape);
  const double computing = slowed.compute_seconds / slowed.seconds;
  EXPECT_NEAR(slowed.seconds, 8.0 * (1 + 0.5 * computing * computing), 1e-2);
}

// Whatever the shape: never below the bound, never above the sum, and more
// slots never hurt.
TEST(CostModelTest, APassLiesBetweenItsBoundAndTheSum) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 500; ++round) {
    std::vector<UnitCost> units(2 + random() % 40);
    std::vector<bool> resident(units.size());
    for (size_t i = 0; i < units.size(); ++i) {
      units[i] = {1 + random() % 100, static_cast<double>(random() % 100)};
      resident[i] = random() % 3 == 0;
    }
    double last = 1e300;
    for (int slots : {1, 2, 3, 8}) {
      const PassPrediction pass =
          PredictPass({.units = units,
                       .resident = resident,
                       .slots = slots,
                       .disk_bytes_per_second = 1,
                       .seconds_between = static_cast<double>(random() % 2)});
      EXPECT_GE(pass.seconds, pass.bound_seconds() - 1e-6);
      EXPECT_LE(pass.seconds, pass.disk_seconds + pass.compute_seconds + 1e-6);
      EXPECT_LE(pass.seconds, last + 1.0 + 1e-6);
      last = pass.seconds;
    }
  }
}

}  // namespace
}  // namespace coldstream
