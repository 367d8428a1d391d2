#include "scheduler/split_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace coldstream {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

// Units of 1 MiB of weights: the last, like a head, is the device's.
std::vector<WeightUnit> MebibyteUnits(int count) {
  std::vector<WeightUnit> units(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    WeightUnit& unit = units[static_cast<size_t>(i)];
    unit.name = "unit" + std::to_string(i);
    unit.parts.push_back(
        {{0, static_cast<uint64_t>(i) * kMebibyte, kMebibyte}, 0});
    unit.buffer_bytes = unit.read_bytes = kMebibyte;
  }
  return units;
}

// Of a PCIe 4 machine, roughly: per unit, 1 MiB / rate.
SplitRates MachineRates() {
  return {.upload = 20e9,
          .disk = 0,
          .cpu = 40e9,
          .device = 800e9,
          .cpu_tokens = 200e9,
          .device_tokens = 100000e9,
          .crossing_seconds = 0};
}

// Even units in device memory, odd ones in host memory, of which the CPU
// computes the first `on_cpu`.
struct HalfOnHost {
  HalfOnHost(int count, int on_cpu) : units(MebibyteUnits(count)) {
    int left = on_cpu;
    for (int i = 0; i < count; ++i) {
      const bool in_host = i % 2 == 1 && i + 1 < count;
      vram.resident.push_back(!in_host);
      host.resident.push_back(in_host);
      const bool cpu = in_host && left-- > 0;
      for (const Phase phase : kPhases) placement.of(phase).push_back(cpu);
    }
    vram.slot_count = 2;
  }
  double Seconds(int64_t tokens,
                 const SplitRates& rates = MachineRates()) const {
    return PredictSplitPass({.units = units,
                             .vram = vram,
                             .host = host,
                             .placement = placement,
                             .tokens = tokens,
                             .hidden = 4096,
                             .rates = rates})
        .seconds;
  }
  std::vector<WeightUnit> units;
  MemoryPlan vram, host;
  Placement placement;
};

TEST(SplitModelTest, NoneOnTheCpuIsTheUploadModels) {
  const HalfOnHost none(21, 0);
  // Ten units are copied; the device hides behind that.
  EXPECT_NEAR(none.Seconds(1), 10 * kMebibyte / 20e9, 0.1 * kMebibyte / 20e9);
}

TEST(SplitModelTest, AllOnTheCpuTakesBothSidesInTurn) {
  const HalfOnHost all(21, 10);
  EXPECT_NEAR(all.Seconds(1),
              10 * kMebibyte / 40e9 + 11 * kMebibyte / 800e9 +
                  20 * 4096 * sizeof(float) / 20e9,
              1e-9);
}

TEST(SplitModelTest, EachCrossingTakesItsTime) {
  const HalfOnHost all(21, 10);
  SplitRates slow = MachineRates();
  slow.crossing_seconds = 1e-3;
  EXPECT_NEAR(all.Seconds(1, slow) - all.Seconds(1), 20e-3, 1e-9);
}

TEST(SplitModelTest, CopiesGoOnWhileTheCpuComputes) {
  // Of ten, a third on the CPU: their copies are saved and the rest is copied
  // behind them, so that it takes less than either extreme.
  const double some = HalfOnHost(21, 3).Seconds(1);
  EXPECT_LT(some, HalfOnHost(21, 0).Seconds(1));
  EXPECT_LT(HalfOnHost(21, 10).Seconds(1), HalfOnHost(21, 0).Seconds(1));
}

TEST(SplitModelTest, ManyTokensAreTheDevices) {
  EXPECT_GT(HalfOnHost(21, 1).Seconds(512), HalfOnHost(21, 0).Seconds(512));
  EXPECT_GT(HalfOnHost(21, 10).Seconds(512),
            2 * HalfOnHost(21, 0).Seconds(512));
}

TEST(SplitModelTest, ADevicesArithmeticThatIsNotKnownIsNoLimit) {
  SplitRates rates = MachineRates();
  rates.device_tokens = 0;
  ASSERT_TRUE(rates.known());
  const HalfOnHost none(21, 0);
  EXPECT_NEAR(none.Seconds(1 << 20, rates), none.Seconds(1, rates), 1e-9);
  rates.cpu_tokens = 0;
  EXPECT_FALSE(rates.known());
}

// Bytes that are read from disk wait for it on either plan.
TEST(SplitModelTest, ADiskThatIsTheLimitIsNotHelped) {
  SplitRates rates = MachineRates();
  rates.disk = 1e9;
  HalfOnHost none(21, 0), all(21, 5);
  for (HalfOnHost* each : {&none, &all}) {
    for (size_t i = 11; i < 20; i += 2) {
      each->host.resident[i] = false;
      for (const Phase phase : kPhases) each->placement.of(phase)[i] = false;
    }
  }
  EXPECT_NEAR(none.Seconds(1, rates), 5 * kMebibyte / 1e9, kMebibyte / 1e9);
  EXPECT_NEAR(all.Seconds(1, rates), none.Seconds(1, rates), kMebibyte / 1e9);
}

TEST(SplitModelTest, TheBestCountIsFoundInAnyValley) {
  for (int64_t most = 0; most <= 130; ++most) {
    for (int64_t bottom = 0; bottom <= most; ++bottom) {
      int asked = 0;
      const int64_t best = BestCount(most, [&](int64_t count) {
        ++asked;
        return 1 + std::abs(static_cast<double>(count - bottom));
      });
      ASSERT_EQ(best, bottom) << "of " << most;
      EXPECT_LE(asked, 25);
    }
  }
}

TEST(SplitModelTest, CountsThatCannotBeAreNotChosen) {
  const auto seconds = [](int64_t count) {
    return count > 5 ? std::numeric_limits<double>::infinity()
                     : 10.0 - static_cast<double>(count);
  };
  EXPECT_EQ(BestCount(32, seconds), 5);
  EXPECT_EQ(
      BestCount(
          32, [](int64_t) { return std::numeric_limits<double>::infinity(); }),
      0);
}

TEST(SplitModelTest, AGainThatDoesNotShowIsNone) {
  const auto seconds = [](double gain) {
    return [gain](int64_t count) {
      return 1 - gain * static_cast<double>(count) / 10;
    };
  };
  EXPECT_EQ(BestCount(10, seconds(0.01)), 0);
  EXPECT_EQ(BestCount(10, seconds(0.05)), 10);
}

}  // namespace
}  // namespace coldstream
