#include <cmath>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/cuda_language.cuh"
#include "tests/simt/run_block.h"
#include "tests/support/sanitizers.h"

namespace coldstream::simt {
namespace {

TEST(SimtSharedMemoryTest, ThreadsOfABlockShareItAndBlocksBeginAnew) {
  RunBlock(
      64,
      [] {
        COLDSTREAM_SHARED(float, values, 64);
        EXPECT_TRUE(std::isnan(values[threadIdx.x]));
        __syncthreads();
        values[threadIdx.x] = static_cast<float>(threadIdx.x);
        __syncthreads();
        EXPECT_EQ(values[63 - threadIdx.x],
                  static_cast<float>(63 - threadIdx.x));
      },
      3);
}

TEST(SimtSharedMemoryTest, EachArrayHasItsOwnMemory) {
  RunBlock(32, [] {
    COLDSTREAM_SHARED(int, first, 32);
    COLDSTREAM_SHARED(int, second, 32);
    first[threadIdx.x] = 1;
    second[threadIdx.x] = 2;
    __syncthreads();
    EXPECT_EQ(first[31 - threadIdx.x], 1);
    EXPECT_EQ(second[31 - threadIdx.x], 2);
  });
}

TEST(SimtSharedMemoryTest, DynamicMemoryIsAsLargeAsTheLaunchSays) {
  std::set<float*> addresses;
  RunGrid({.kernel = "Test", .grid = 2, .block = 32, .shared_bytes = 128}, [&] {
    COLDSTREAM_DYNAMIC_SHARED(float, values);
    addresses.insert(values);
    EXPECT_TRUE(std::isnan(values[threadIdx.x]));
    __syncthreads();
    values[threadIdx.x] = 1;
  });
  EXPECT_EQ(addresses.size(), 1u);
}

TEST(SimtSharedMemoryDeathTest, MoreThanABlockCanHaveIsReported) {
  EXPECT_DEATH(RunBlock(1,
                        [] {
                          COLDSTREAM_SHARED(float, values, 16385);
                          values[0] = 1;
                        }),
               "more shared memory");
}

TEST(SimtSharedMemoryDeathTest, AddressSanitizerSeesOneStepPastTheEnd) {
  if (!kSanitized) GTEST_SKIP() << "not a sanitizer build";
  const auto kernel = [] {
    COLDSTREAM_SHARED(float, values, 31);
    float* opaque = values;
    opaque[threadIdx.x] = 1;
  };
  EXPECT_DEATH(RunBlock(32, kernel), "heap-buffer-overflow");
}

TEST(SimtSharedMemoryDeathTest, AddressSanitizerSeesPastTheEndOfGlobalMemory) {
  if (!kSanitized) GTEST_SKIP() << "not a sanitizer build";
  std::vector<float> x(60);
  const auto kernel = [p = x.data()] {
    const unsigned i = blockIdx.x * 32 + threadIdx.x;
    __syncthreads();  // the stack of a fiber, not the test's own
    p[i] = 1;
  };
  EXPECT_DEATH(RunBlock(32, kernel, 2), "heap-buffer-overflow");
}

TEST(SimtSharedMemoryDeathTest, AddressSanitizerSeesPastAnArrayOfAFiber) {
  if (!kSanitized) GTEST_SKIP() << "not a sanitizer build";
  const auto kernel = [] {
    volatile float local[4] = {};
    volatile float* opaque = local;
    __syncthreads();
    opaque[threadIdx.x] = 1;
    __syncthreads();
  };
  EXPECT_DEATH(RunBlock(32, kernel),
               "stack-buffer-overflow|insufficient space");
}

}  // namespace
}  // namespace coldstream::simt
