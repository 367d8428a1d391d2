#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace coldstream {
namespace {

class ParallelOf : public ::testing::TestWithParam<int> {
 protected:
  Parallel parallel_{GetParam()};
};

TEST_P(ParallelOf, SaysHowManyThreadsItHas) {
  EXPECT_EQ(parallel_.threads(), GetParam());
}

TEST_P(ParallelOf, CoversEveryIndexExactlyOnce) {
  for (const int64_t count : {1, 2, 7, 64, 1000, 4097}) {
    for (const int64_t grain : {1, 3, 16, 1000, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      parallel_.For(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const std::atomic<int>& times : seen)
        ASSERT_EQ(times, 1) << count << " by " << grain;
    }
  }
}

TEST_P(ParallelOf, EveryRangeBeginsAtAMultipleOfTheGrainAndIsNotEmpty) {
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  parallel_.For(1003, 16, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  ASSERT_FALSE(ranges.empty());
  for (const auto& [begin, end] : ranges) {
    EXPECT_EQ(begin % 16, 0);
    EXPECT_LT(begin, end);
    EXPECT_LE(end, 1003);
    EXPECT_TRUE(end % 16 == 0 || end == 1003) << end;
  }
}

TEST_P(ParallelOf, NothingToDoCallsNothing) {
  const auto fail = [](int64_t, int64_t) { FAIL() << "called"; };
  parallel_.For(0, 1, fail);
  parallel_.For(-5, 4, fail);
}

TEST_P(ParallelOf, WhatBodiesWroteIsVisibleAfterwards) {
  std::vector<int64_t> values(10000);
  parallel_.For(10000, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] = i;
  });
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], static_cast<int64_t>(i));
}

TEST_P(ParallelOf, NeverUsesMoreThreadsThanItWasGiven) {
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  for (int round = 0; round < 20; ++round) {
    parallel_.For(200, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int now = ++inside;
        int before = most;
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        std::this_thread::yield();
        --inside;
      }
    });
  }
  EXPECT_LE(most, GetParam());
}

TEST_P(ParallelOf, ACancelledForSkipsRangesThatHaveNotBegun) {
  std::atomic<bool> cancel{true};
  parallel_.set_cancel(&cancel);
  std::atomic<int64_t> done{0};
  const auto count = [&](int64_t begin, int64_t end) { done += end - begin; };
  parallel_.For(1000, 1, count);
  EXPECT_EQ(done, 0);
  cancel = false;
  parallel_.For(1000, 1, count);
  EXPECT_EQ(done, 1000);
  cancel = true;
  parallel_.set_cancel(nullptr);
  parallel_.For(1000, 1, count);
  EXPECT_EQ(done, 2000);
}

TEST_P(ParallelOf, CancellingOnTheWayEndsEarly) {
  std::atomic<bool> cancel{false};
  parallel_.set_cancel(&cancel);
  std::atomic<int64_t> calls{0};
  constexpr int64_t kMany = 1 << 20;
  parallel_.For(kMany, 1, [&](int64_t, int64_t) {
    ++calls;
    cancel = true;
  });
  // Each thread may be in one body while the flag turns.
  EXPECT_GE(calls, 1);
  EXPECT_LE(calls, 2 * GetParam());
}

TEST_P(ParallelOf, ExecuteRunsTheBodyOnceAndWaits) {
  int runs = 0;
  parallel_.Execute([&] { ++runs; });
  EXPECT_EQ(runs, 1);
}

TEST_P(ParallelOf, ForWorksInsideExecute) {
  std::atomic<int64_t> sum{0};
  parallel_.Execute([&] {
    parallel_.For(100, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
  });
  EXPECT_EQ(sum, 4950);
}

// A thread that waits for its inner For must not start another outer range
// under it: the flag would then still be set.
TEST_P(ParallelOf, AWaitingThreadPicksUpNoUnrelatedWork) {
  thread_local bool inside = false;
  std::atomic<int> reentered{0};
  std::atomic<int64_t> inner{0};
  for (int round = 0; round < 50; ++round) {
    parallel_.For(64, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (inside) ++reentered;
        inside = true;
        parallel_.For(64, 1, [&](int64_t first, int64_t last) {
          for (int64_t j = first; j < last; ++j) {
            ++inner;
            std::this_thread::yield();
          }
        });
        inside = false;
      }
    });
  }
  EXPECT_EQ(reentered, 0);
  EXPECT_EQ(inner, 50 * 64 * 64);
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelOf, ::testing::Values(1, 2, 4, 8));

// How many bodies are in progress together when each waits for the others.
int64_t ThreadsThatMeet(Parallel& parallel, int wanted) {
  std::atomic<int> arrived{0};
  std::mutex mutex;
  std::set<std::thread::id> ids;
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  parallel.For(wanted, 1, [&](int64_t begin, int64_t end) {
    {
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    }
    arrived += static_cast<int>(end - begin);
    while (arrived < wanted && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  });
  return static_cast<int64_t>(ids.size());
}

TEST(Parallel, AnExplicitThreadCountWinsOverTheCpusThereAre) {
  Parallel eight(8);
  EXPECT_EQ(ThreadsThatMeet(eight, 8), 8);
}

TEST(Parallel, ANarrowOneBesideItDoesNotSlowAWideOne) {
  const auto narrow = std::make_unique<Parallel>(1);
  Parallel wide(4);
  const auto another = std::make_unique<Parallel>(2);
  EXPECT_EQ(ThreadsThatMeet(wide, 4), 4);
}

TEST(Parallel, OneThreadRunsOnTheCaller) {
  Parallel one(1);
  const std::thread::id caller = std::this_thread::get_id();
  one.For(50, 1, [&](int64_t, int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

TEST(ParallelDeathTest, NoThreadsOrNoGrainIsACallersBug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Parallel(0), "CHECK failed");
  EXPECT_DEATH(Parallel(1).For(5, 0, [](int64_t, int64_t) {}), "CHECK failed");
}

}  // namespace
}  // namespace coldstream
