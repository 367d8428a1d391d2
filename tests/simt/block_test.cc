#include "tests/simt/block.h"

#include <array>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simt/run_block.h"
#include "tests/simt/simt.h"

namespace coldstream::simt {
namespace {

TEST(SimtBlockTest, EachThreadOfTheGridRunsOnceWithItsIndices) {
  for (const LaneOrder order : kLaneOrders) {
    SetLaneOrder(order);
    std::set<std::array<unsigned, 6>> seen;
    int runs = 0;
    RunBlock(
        dim3(5, 3, 2),
        [&] {
          EXPECT_EQ(blockDim.x * blockDim.y * blockDim.z, 30u);
          EXPECT_EQ(gridDim.x, 4u);
          EXPECT_TRUE(threadIdx.x < 5 && threadIdx.y < 3 && threadIdx.z < 2);
          EXPECT_TRUE(blockIdx.x < 4 && blockIdx.y < 3 && blockIdx.z < 2);
          seen.insert({threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x,
                       blockIdx.y, blockIdx.z});
          ++runs;
        },
        dim3(4, 3, 2));
    EXPECT_EQ(runs, 30 * 24) << NameOf(order);
    EXPECT_EQ(seen.size(), 30u * 24) << NameOf(order);
  }
}

TEST(SimtBlockTest, OrdersAreAsNamed) {
  const auto started = [](LaneOrder order) {
    SetLaneOrder(order);
    std::vector<unsigned> threads;
    RunBlock(70, [&] { threads.push_back(threadIdx.x); });
    return threads;
  };
  const std::vector<unsigned> forward = started({LaneOrder::kForward});
  const std::vector<unsigned> reverse = started({LaneOrder::kReverse});
  for (unsigned i = 0; i < 70; ++i) {
    EXPECT_EQ(forward[i], i);
    EXPECT_EQ(reverse[i], 69 - i);
  }
  const std::vector<unsigned> shuffled = started({LaneOrder::kShuffled, 5});
  EXPECT_NE(shuffled, forward);
  EXPECT_NE(shuffled, started({LaneOrder::kShuffled, 6}));
  EXPECT_EQ(shuffled, started({LaneOrder::kShuffled, 5}));
}

TEST(SimtBlockTest, NoThreadPassesABarrierBeforeAllHaveCome) {
  for (const LaneOrder order : kLaneOrders) {
    SetLaneOrder(order);
    unsigned came = 0;
    RunBlock(200, [&] {
      for (unsigned round = 1; round <= 3; ++round) {
        ++came;
        __syncthreads();
        EXPECT_EQ(came, 200 * round);
        __syncthreads();
      }
    });
  }
}

TEST(SimtBlockTest, ABarrierWaitsOnlyForThreadsThatHaveNotReturned) {
  unsigned passed = 0;
  RunBlock(64, [&] {
    if (threadIdx.x % 3 == 0) return;
    __syncthreads();
    ++passed;
  });
  EXPECT_EQ(passed, 42u);
}

// Sums the block's numbers through shared memory; `barrier` is the one that
// keeps readers behind writers.
float BlockSum(unsigned threads, bool barrier) {
  float result = 0;
  RunBlock(threads, [&] {
    static constinit char site = 0;
    auto& values = SharedArray<float, 256>(&site);
    values[threadIdx.x] = static_cast<float>(threadIdx.x);
    for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
      if (barrier) __syncthreads();
      if (threadIdx.x < step) values[threadIdx.x] += values[threadIdx.x + step];
    }
    if (threadIdx.x == 0) result = values[0];
  });
  return result;
}

TEST(SimtBlockTest, AReductionIsRightInEveryOrder) {
  for (const LaneOrder order : kLaneOrders) {
    SetLaneOrder(order);
    EXPECT_EQ(BlockSum(256, true), 255 * 128) << NameOf(order);
  }
}

TEST(SimtBlockTest, AReductionWithoutItsBarrierIsNoticed) {
  int wrong = 0;
  for (const LaneOrder order : kLaneOrders) {
    SetLaneOrder(order);
    wrong += BlockSum(256, false) != 255 * 128;
  }
  EXPECT_GE(wrong, 3);
}

TEST(SimtBlockDeathTest, DifferentBarriersAtOnceAreReported) {
  const auto kernel = [] {
    if (threadIdx.x < 40) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  };
  EXPECT_DEATH(RunBlock(64, kernel),
               "kernel TestKernel, block \\(0, 0, 0\\).*different barriers.*"
               "thread \\(0, 0, 0\\) at .*block_test.*thread \\(40, 0, 0\\)");
}

TEST(SimtBlockDeathTest, ABarrierThatAThreadCannotReachIsReported) {
  EXPECT_DEATH(RunBlock(64,
                        [] {
                          if (threadIdx.x == 3) {
                            __syncwarp();
                          } else {
                            __syncthreads();
                          }
                        }),
               "no thread can go on");
}

TEST(SimtBlockDeathTest, ABlockThatIsTooLargeIsRefused) {
  EXPECT_DEATH(RunBlock(1025, [] {}), "no such block");
}

}  // namespace
}  // namespace coldstream::simt
