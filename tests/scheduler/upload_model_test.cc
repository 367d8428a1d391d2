#include "scheduler/upload_model.h"

#include <gtest/gtest.h>

#include <random>

namespace coldstream {
namespace {

// `count` units of 10 bytes.
std::vector<UnitCost> Units(int count, double compute_seconds) {
  return std::vector<UnitCost>(static_cast<size_t>(count),
                               {10, compute_seconds});
}

TEST(UploadModelTest, AllOnTheDeviceTakesTheComputationAlone) {
  const auto units = Units(8, 0.25);
  const std::vector<bool> all(8, true), none(8, false);
  const PassPrediction pass =
      PredictUploadPass({.units = units, .on_device = all, .in_host = none});
  EXPECT_DOUBLE_EQ(pass.seconds, 2.0);
  EXPECT_EQ(pass.upload_seconds, 0);
  EXPECT_EQ(pass.binding(), Link::kCompute);
}

TEST(UploadModelTest, CopiesFromHostMemoryHideBehindTheComputation) {
  const auto units = Units(8, 1.0);
  const std::vector<bool> none(8, false), all(8, true);
  const PassPrediction pass =
      PredictUploadPass({.units = units,
                         .on_device = none,
                         .in_host = all,
                         .slots = 2,
                         .upload_bytes_per_second = 20});
  EXPECT_DOUBLE_EQ(pass.seconds, 8.0);
  EXPECT_DOUBLE_EQ(pass.upload_seconds, 4.0);
  EXPECT_EQ(pass.binding(), Link::kCompute);
}

TEST(UploadModelTest, ASlowLinkIsTheOnlyLimit) {
  const auto units = Units(8, 0.1);
  const std::vector<bool> none(8, false), all(8, true);
  const PassPrediction pass =
      PredictUploadPass({.units = units,
                         .on_device = none,
                         .in_host = all,
                         .slots = 2,
                         .upload_bytes_per_second = 10});
  EXPECT_NEAR(pass.seconds, 8.0, 1e-9);
  EXPECT_EQ(pass.binding(), Link::kUpload);
}

// With one slot a copy can only begin when the unit before it is done with.
TEST(UploadModelTest, OneSlotAddsCopyingAndComputing) {
  const auto units = Units(8, 0.5);
  const std::vector<bool> none(8, false), all(8, true);
  const PassPrediction pass =
      PredictUploadPass({.units = units,
                         .on_device = none,
                         .in_host = all,
                         .slots = 1,
                         .upload_bytes_per_second = 10});
  EXPECT_NEAR(pass.seconds, 8 * 1.5, 1e-9);
}

// Disk 1 s, copy 0.5 s, computation 0.1 s a unit.
TEST(UploadModelTest, ReadsCopiesAndComputationOverlap) {
  const auto units = Units(8, 0.1);
  const std::vector<bool> none(8, false);
  const PassPrediction pass =
      PredictUploadPass({.units = units,
                         .on_device = none,
                         .in_host = none,
                         .slots = 2,
                         .staging_buffers = 2,
                         .disk_bytes_per_second = 10,
                         .upload_bytes_per_second = 20});
  EXPECT_NEAR(pass.seconds, 8.0, 0.7);  // and the end of a pass
  EXPECT_DOUBLE_EQ(pass.disk_seconds, 8.0);
  EXPECT_EQ(pass.binding(), Link::kDisk);
}

// The buffer is taken until its copy is done: 1 s and 0.5 s in turns.
TEST(UploadModelTest, OneStagingBufferAddsReadingAndCopying) {
  const auto units = Units(8, 0.0);
  const std::vector<bool> none(8, false);
  const PassPrediction pass =
      PredictUploadPass({.units = units,
                         .on_device = none,
                         .in_host = none,
                         .slots = 4,
                         .staging_buffers = 1,
                         .disk_bytes_per_second = 10,
                         .upload_bytes_per_second = 20});
  EXPECT_NEAR(pass.seconds, 8 * 1.5, 1e-9);
}

// No schedule beats the busiest resource, or is worse than all in turn.
TEST(UploadModelTest, APassLiesBetweenItsBoundAndTheSum) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.0, 1.0);
  for (int round = 0; round < 300; ++round) {
    const int count = 1 + static_cast<int>(random() % 20);
    std::vector<UnitCost> units;
    std::vector<bool> device, host;
    for (int i = 0; i < count; ++i) {
      units.push_back({random() % 100, seconds(random)});
      device.push_back(random() % 3 == 0);
      host.push_back(random() % 2 == 0);
    }
    const PassPrediction pass = PredictUploadPass(
        {.units = units,
         .on_device = device,
         .in_host = host,
         .slots = 1 + static_cast<int>(random() % 4),
         .staging_buffers = 1 + static_cast<int>(random() % 4),
         .disk_bytes_per_second = 50,
         .upload_bytes_per_second = 200,
         .seconds_between = 0.1});
    EXPECT_GE(pass.seconds, pass.bound_seconds() - 1e-9) << round;
    EXPECT_LE(pass.seconds, pass.disk_seconds + pass.upload_seconds +
                                pass.compute_seconds + 1e-9)
        << round;
  }
}

}  // namespace
}  // namespace coldstream
