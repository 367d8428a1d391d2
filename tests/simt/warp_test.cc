// Every warp operation against its definition, lane by lane.

#include "tests/simt/warp.h"

#include <array>
#include <random>

#include "gtest/gtest.h"
#include "tests/simt/run_block.h"

namespace coldstream::simt {
namespace {

constexpr unsigned kAll = 0xffffffffu;

TEST(SimtWarpTest, ShufflesReadTheLaneTheyName) {
  for (const LaneOrder order : kLaneOrders) {
    SetLaneOrder(order);
    for (const int width : {1, 2, 8, 32}) {
      for (int delta = 0; delta < 32; ++delta) {
        RunBlock(64, [&] {
          const int lane = static_cast<int>(threadIdx.x % 32);
          const int begin = lane / width * width;
          const int value = static_cast<int>(threadIdx.x) * 100;
          const int base = value - 100 * lane;
          const auto of = [&](int source) { return base + 100 * source; };
          EXPECT_EQ(__shfl_sync(kAll, value, delta, width),
                    of(begin + delta % width));
          EXPECT_EQ(
              __shfl_up_sync(kAll, value, static_cast<unsigned>(delta), width),
              of(lane - delta >= begin ? lane - delta : lane));
          EXPECT_EQ(__shfl_down_sync(kAll, value, static_cast<unsigned>(delta),
                                     width),
                    of(lane + delta < begin + width ? lane + delta : lane));
          const int other = lane ^ delta;
          EXPECT_EQ(__shfl_xor_sync(kAll, value, delta, width),
                    of(other < begin + width ? other : lane));
        });
      }
    }
  }
}

TEST(SimtWarpTest, EightByteValuesAreShuffledWhole) {
  RunBlock(32, [] {
    const double value = 1.0 / (1 + threadIdx.x);
    EXPECT_EQ(__shfl_xor_sync(kAll, value, 1), 1.0 / (1 + (threadIdx.x ^ 1)));
  });
}

TEST(SimtWarpTest, VotesCountTheLanesOfTheMask) {
  for (const LaneOrder order : kLaneOrders) {
    SetLaneOrder(order);
    std::mt19937 random(3);
    for (int round = 0; round < 20; ++round) {
      const unsigned mask = static_cast<unsigned>(random()) | 1u;
      unsigned votes = static_cast<unsigned>(random());
      if (round % 4 == 1) votes |= mask;
      if (round % 4 == 2) votes &= ~mask;
      RunBlock(32, [&] {
        if ((mask >> threadIdx.x & 1) == 0) return;
        const int vote = static_cast<int>(votes >> threadIdx.x & 1);
        EXPECT_EQ(__ballot_sync(mask, vote), votes & mask);
        EXPECT_EQ(__any_sync(mask, vote), (votes & mask) != 0);
        EXPECT_EQ(__all_sync(mask, vote), (votes & mask) == mask);
      });
    }
  }
}

TEST(SimtWarpTest, AWarpThatIsNotFullMayNameAllLanes) {
  RunBlock(40, [] {
    const unsigned lanes = threadIdx.x < 32 ? kAll : 0xffu;
    EXPECT_EQ(__ballot_sync(kAll, 1), lanes);
  });
}

TEST(SimtWarpTest, TwoHalvesOfAWarpMayWorkApart) {
  std::array<int, 32> sums = {};
  RunBlock(32, [&] {
    const unsigned mask = threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u;
    int sum = static_cast<int>(threadIdx.x);
    const int rounds = threadIdx.x < 16 ? 4 : 3;
    for (int i = 0; i < rounds; ++i) sum += __shfl_xor_sync(mask, sum, 1 << i);
    sums[threadIdx.x] = sum;
  });
  EXPECT_EQ(sums[0], 15 * 8);
  EXPECT_EQ(sums[16], 8 * 16 + 28);
}

TEST(SimtWarpTest, LanesSeeWhatOthersWroteBeforeABarrierOfTheWarp) {
  for (const LaneOrder order : kLaneOrders) {
    SetLaneOrder(order);
    std::array<unsigned, 32> written = {};
    RunBlock(32, [&] {
      written[threadIdx.x] = threadIdx.x + 1;
      __syncwarp();
      EXPECT_EQ(written[31 - threadIdx.x], 32 - threadIdx.x);
    });
  }
}

TEST(SimtWarpDeathTest, AShuffleFromALaneOutsideTheMaskIsReported) {
  EXPECT_DEATH(RunBlock(32,
                        [] {
                          if (threadIdx.x < 16) __shfl_xor_sync(0xffffu, 1, 16);
                        }),
               "shuffle reads lane 16, which takes no part: thread");
}

TEST(SimtWarpDeathTest, AShuffleFromALaneThatReturnedIsReported) {
  EXPECT_DEATH(RunBlock(32,
                        [] {
                          if (threadIdx.x == 5) return;
                          __shfl_sync(kAll, 1, 5);
                        }),
               "shuffle reads lane 5");
}

TEST(SimtWarpDeathTest, ALaneThatIsNotInItsOwnMaskIsReported) {
  EXPECT_DEATH(RunBlock(32, [] { __syncwarp(0x7fffffffu); }),
               "not in its own mask: thread \\(31, 0, 0\\)");
}

TEST(SimtWarpDeathTest, LanesWithDifferentMasksAreReported) {
  EXPECT_DEATH(RunBlock(2, [] { __syncwarp(threadIdx.x == 0 ? 3 : 2); }),
               "disagree.*mask 00000002.*mask 00000003");
}

TEST(SimtWarpDeathTest, LanesAtDifferentPlacesAreReported) {
  const auto kernel = [] {
    if (threadIdx.x < 7) {
      __syncwarp();
    } else {
      __syncwarp();
    }
  };
  EXPECT_DEATH(RunBlock(32, kernel), "disagree");
}

}  // namespace
}  // namespace coldstream::simt
