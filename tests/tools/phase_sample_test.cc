#include "tools/phase_sample.h"

#include "gtest/gtest.h"

namespace coldstream {
namespace {

EngineStats Stats(int64_t unit) {
  EngineStats stats;
  stats.passes = unit;
  stats.units = 2 * unit;
  stats.bytes_from_disk = static_cast<uint64_t>(3 * unit);
  stats.disk_busy_seconds = 4.0 * static_cast<double>(unit);
  stats.run_seconds = 5.0 * static_cast<double>(unit);
  stats.compute_seconds = 6.0 * static_cast<double>(unit);
  stats.stall_seconds = 7.0 * static_cast<double>(unit);
  stats.bytes_uploaded = static_cast<uint64_t>(8 * unit);
  stats.upload_busy_seconds = 9.0 * static_cast<double>(unit);
  return stats;
}

void ExpectEqual(const EngineStats& a, const EngineStats& b) {
  EXPECT_EQ(a.passes, b.passes);
  EXPECT_EQ(a.units, b.units);
  EXPECT_EQ(a.bytes_from_disk, b.bytes_from_disk);
  EXPECT_EQ(a.disk_busy_seconds, b.disk_busy_seconds);
  EXPECT_EQ(a.run_seconds, b.run_seconds);
  EXPECT_EQ(a.compute_seconds, b.compute_seconds);
  EXPECT_EQ(a.stall_seconds, b.stall_seconds);
  EXPECT_EQ(a.bytes_uploaded, b.bytes_uploaded);
  EXPECT_EQ(a.upload_busy_seconds, b.upload_busy_seconds);
}

TEST(PhaseSampleTest, EveryCounterIsAdded) {
  ExpectEqual(Stats(5) + Stats(2), Stats(7));
}

TEST(PhaseSampleTest, TheRateIsTokensOverWallClock) {
  PhaseSample sample;
  EXPECT_EQ(sample.tokens_per_second(), 0);
  sample.tokens = 10;
  sample.seconds = 4;
  EXPECT_EQ(sample.tokens_per_second(), 2.5);
  const PhaseSample sum = sample + sample;
  EXPECT_EQ(sum.tokens, 20);
  EXPECT_EQ(sum.seconds, 8);
}

}  // namespace
}  // namespace coldstream
