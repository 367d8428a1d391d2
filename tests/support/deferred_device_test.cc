// What the deferred device promises beyond the contract of tests/base/
// device_test.cc: orders that differ by seed, and faults.

#include "tests/support/deferred_device.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simt/kernel_queue.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeeds = 200;

std::unique_ptr<Device> DeviceOf(uint64_t seed, DeviceFaults faults = {}) {
  return CreateDeferredDevice({.seed = seed, .faults = faults});
}

void Enqueue(Stream* stream, std::function<void()> kernel) {
  static_cast<simt::KernelQueue*>(stream->native_handle())
      ->Enqueue(std::move(kernel));
}

TEST(DeferredDeviceTest, AStreamRunsInItsOrderUnderEverySeed) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto device = DeviceOf(seed);
    const auto stream = *device->NewStream();
    std::vector<int> order;
    for (int i = 0; i < 10; ++i)
      Enqueue(stream.get(), [&order, i] { order.push_back(i); });
    ASSERT_THAT(stream->Synchronize(), IsOk());
    ASSERT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
}

TEST(DeferredDeviceTest, WorkAfterAWaitSeesTheWorkBeforeTheRecord) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto device = DeviceOf(seed);
    const auto first = *device->NewStream();
    const auto second = *device->NewStream();
    const auto recorded = *device->NewEvent();
    bool done = false;
    bool seen = false;
    Enqueue(first.get(), [&] { done = true; });
    ASSERT_THAT(first->Record(recorded.get()), IsOk());
    ASSERT_THAT(second->Wait(*recorded), IsOk());
    Enqueue(second.get(), [&] { seen = done; });
    ASSERT_THAT(second->Synchronize(), IsOk());
    ASSERT_TRUE(seen) << "seed " << seed;
  }
}

TEST(DeferredDeviceTest, StreamsThatDoNotWaitInterleaveInManyOrders) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::string order;
    {
      const auto device = DeviceOf(seed);
      const auto a = *device->NewStream();
      const auto b = *device->NewStream();
      for (int i = 0; i < 3; ++i) {
        Enqueue(a.get(), [&order] { order += 'a'; });
        Enqueue(b.get(), [&order] { order += 'b'; });
      }
      ASSERT_THAT(a->Synchronize(), IsOk());
    }  // what is left of b
    ASSERT_EQ(order.size(), 6u);
    orders.insert(order);
  }
  // The extremes and most of the (6 choose 3) = 20 orders.
  EXPECT_TRUE(orders.contains("aaabbb"));
  EXPECT_TRUE(orders.contains("bbbaaa"));
  EXPECT_TRUE(orders.contains("ababab"));
  EXPECT_GT(orders.size(), 10u);
}

TEST(DeferredDeviceTest, ASeedGivesItsOrderAgain) {
  const auto order_of = [](uint64_t seed) {
    std::string order;
    const auto device = DeviceOf(seed);
    const auto a = *device->NewStream();
    const auto b = *device->NewStream();
    for (int i = 0; i < 20; ++i) {
      Enqueue(a.get(), [&order] { order += 'a'; });
      Enqueue(b.get(), [&order] { order += 'b'; });
    }
    EXPECT_THAT(b->Synchronize(), IsOk());
    EXPECT_THAT(a->Synchronize(), IsOk());
    return order;
  };
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(order_of(seed), order_of(seed)) << "seed " << seed;
}

// What a slot holds, as its user saw it.
enum class Seen { kRight, kPoison, kStale };

// Upload to a slot on one stream, use on another, with or without a wait.
Seen UseOfAnUpload(uint64_t seed, bool waits) {
  const auto device = DeviceOf(seed);
  const auto copy = *device->NewStream();
  const auto compute = *device->NewStream();
  const auto ready = *device->NewEvent();
  auto slot = *device->Allocate(64, "slot");
  const std::vector<std::byte> staging(64, std::byte{7});
  Seen seen = Seen::kStale;
  EXPECT_THAT(copy->CopyToDevice(slot.data(), staging.data(), 64), IsOk());
  EXPECT_THAT(copy->Record(ready.get()), IsOk());
  if (waits) {
    EXPECT_THAT(compute->Wait(*ready), IsOk());
  }
  Enqueue(compute.get(), [&seen, data = slot.data()] {
    seen = data[63] == std::byte{7} ? Seen::kRight
           : data[63] == kPoison    ? Seen::kPoison
                                    : Seen::kStale;
  });
  EXPECT_THAT(compute->Synchronize(), IsOk());
  EXPECT_THAT(copy->Synchronize(), IsOk());
  return seen;
}

TEST(DeferredDeviceTest, AMissingWaitForAnUploadIsSeenUnderMostSeeds) {
  uint64_t wrong = 0;
  uint64_t poison = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ASSERT_EQ(UseOfAnUpload(seed, /*waits=*/true), Seen::kRight);
    const Seen seen = UseOfAnUpload(seed, /*waits=*/false);
    wrong += seen != Seen::kRight;
    poison += seen == Seen::kPoison;
  }
  EXPECT_GT(wrong, kSeeds / 2);
  EXPECT_LT(wrong, kSeeds);  // early orders are drawn too
  EXPECT_GT(poison, 0u);     // as is work between the steps of a copy
}

// The second upload into a slot must come after the first one's user.
bool ReuseHarmsItsUser(uint64_t seed, bool waits) {
  const auto device = DeviceOf(seed);
  const auto copy = *device->NewStream();
  const auto compute = *device->NewStream();
  const auto ready = *device->NewEvent();
  const auto used = *device->NewEvent();
  auto slot = *device->Allocate(64, "slot");
  const std::vector<std::byte> first(64, std::byte{1});
  const std::vector<std::byte> second(64, std::byte{2});
  std::byte seen{};
  EXPECT_THAT(copy->CopyToDevice(slot.data(), first.data(), 64), IsOk());
  EXPECT_THAT(copy->Record(ready.get()), IsOk());
  EXPECT_THAT(compute->Wait(*ready), IsOk());
  Enqueue(compute.get(), [&seen, data = slot.data()] { seen = data[0]; });
  EXPECT_THAT(compute->Record(used.get()), IsOk());
  if (waits) {
    EXPECT_THAT(copy->Wait(*used), IsOk());
  }
  EXPECT_THAT(copy->CopyToDevice(slot.data(), second.data(), 64), IsOk());
  EXPECT_THAT(copy->Synchronize(), IsOk());
  EXPECT_THAT(compute->Synchronize(), IsOk());
  return seen != std::byte{1};
}

TEST(DeferredDeviceTest, AReuseThatDoesNotWaitForTheUserIsSeenUnderMostSeeds) {
  uint64_t harmed = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ASSERT_FALSE(ReuseHarmsItsUser(seed, /*waits=*/true)) << "seed " << seed;
    harmed += ReuseHarmsItsUser(seed, /*waits=*/false);
  }
  EXPECT_GT(harmed, kSeeds / 2);
}

TEST(DeferredDeviceTest, AnUploadMayReadItsSourceLateOrEarly) {
  uint64_t late = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto device = DeviceOf(seed);
    const auto copy = *device->NewStream();
    auto slot = *device->Allocate(1, "slot");
    std::byte staging{1};
    ASSERT_THAT(copy->CopyToDevice(slot.data(), &staging, 1), IsOk());
    staging = std::byte{2};  // did not wait for the copy's event
    ASSERT_THAT(copy->Synchronize(), IsOk());
    late += slot.data()[0] == std::byte{2};
  }
  EXPECT_GT(late, kSeeds / 2);
  EXPECT_LT(late, kSeeds);
}

TEST(DeferredDeviceTest, PollingAnEventComesToAnEnd) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto device = DeviceOf(seed);
    const auto stream = *device->NewStream();
    const auto other = *device->NewStream();
    const auto event = *device->NewEvent();
    bool done = false;
    for (int i = 0; i < 10; ++i) Enqueue(other.get(), [] {});
    Enqueue(stream.get(), [&] { done = true; });
    ASSERT_THAT(stream->Record(event.get()), IsOk());
    while (!event->Ready()) {
    }
    ASSERT_TRUE(done);
  }
}

TEST(DeferredDeviceTest, MemoryBeyondTheDevicesIsRefused) {
  const auto device = CreateDeferredDevice({.memory_bytes = 10000});
  auto first = device->Allocate(6000, "first");
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(
      device->Allocate(6000, "second"),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("second")));
  EXPECT_EQ(device->MemoryInfo()->free, 4000u);
  *first = DeviceMemory();
  EXPECT_THAT(device->Allocate(6000, "second"), IsOk());
  EXPECT_EQ(device->MemoryInfo()->total, 10000u);
}

TEST(DeferredDeviceTest, TheAllocationThatWasToldToIsRefused) {
  const auto device = DeviceOf(1, {.refuse_allocation = 1});
  EXPECT_THAT(device->Allocate(1, "a"), IsOk());
  EXPECT_THAT(device->Allocate(1, "b"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(device->Allocate(1, "c"), IsOk());
}

TEST(DeferredDeviceTest, MorePinnedMemoryThanAllowedIsRefused) {
  const auto device = DeviceOf(1, {.pinned_bytes = 100});
  std::vector<std::byte> a(60);
  std::vector<std::byte> b(60);
  ASSERT_THAT(device->RegisterHostMemory(a), IsOk());
  EXPECT_THAT(device->RegisterHostMemory(b),
              StatusIs(absl::StatusCode::kResourceExhausted));
  device->UnregisterHostMemory(a);
  EXPECT_THAT(device->RegisterHostMemory(b), IsOk());
}

TEST(DeferredDeviceTest, AFailedCopyIsToldOnceAndLeavesPoison) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto device = DeviceOf(seed, {.fail_copies_from = 1});
    const auto stream = *device->NewStream();
    auto slot = *device->Allocate(2, "slot");
    const std::byte staging{1};
    ASSERT_THAT(stream->CopyToDevice(slot.data(), &staging, 1), IsOk());
    ASSERT_THAT(stream->CopyToDevice(slot.data() + 1, &staging, 1), IsOk());
    EXPECT_THAT(stream->Synchronize(),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("a copy")));
    EXPECT_THAT(stream->Synchronize(), IsOk());
    EXPECT_EQ(slot.data()[0], std::byte{1});
    EXPECT_EQ(slot.data()[1], kPoison);
  }
}

TEST(DeferredDeviceTest, AFailedKernelDoesNotRunAndIsToldAtTheNextCall) {
  const auto device = DeviceOf(1, {.fail_kernels_from = 1});
  const auto stream = *device->NewStream();
  const auto event = *device->NewEvent();
  int ran = 0;
  Enqueue(stream.get(), [&] { ++ran; });
  ASSERT_THAT(stream->Record(event.get()), IsOk());
  ASSERT_THAT(event->Wait(), IsOk());
  Enqueue(stream.get(), [&] { ++ran; });
  Enqueue(stream.get(), [&] { ++ran; });
  EXPECT_THAT(stream->Synchronize(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("a kernel")));
  EXPECT_EQ(ran, 1);
  EXPECT_THAT(stream->Record(event.get()), IsOk());
}

TEST(DeferredDeviceTest, ThreadsWithStreamsOfTheirOwnShareOneDevice) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto device = DeviceOf(seed);
    auto slot = *device->Allocate(4, "slots");
    const std::vector<std::byte> in(4, std::byte{3});
    std::vector<std::byte> out(4);
    std::atomic<int> failures = 0;
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const auto copy = *device->NewStream();
        const auto compute = *device->NewStream();
        const auto ready = *device->NewEvent();
        Status status = copy->CopyToDevice(slot.data() + t, &in[t], 1);
        status.Update(copy->Record(ready.get()));
        status.Update(compute->Wait(*ready));
        status.Update(compute->CopyToHost(&out[t], slot.data() + t, 1));
        status.Update(compute->Synchronize());
        if (!status.ok() || out[t] != std::byte{3}) ++failures;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(failures, 0) << "seed " << seed;
  }
}

TEST(DeferredDeviceDeathTest, MemoryFreedUnderAQueuedCopyAborts) {
  if (kSanitized) GTEST_SKIP() << "forks";
  const std::vector<std::byte> staging(64);
  EXPECT_DEATH(
      {
        // Some seed of the first few leaves its work for later.
        for (uint64_t seed = 0; seed < 20; ++seed) {
          const auto device = DeviceOf(seed);
          const auto copy = *device->NewStream();
          auto slot = *device->Allocate(64, "slot");
          (void)copy->CopyToDevice(slot.data(), staging.data(), 64);
        }
      },
      "NeedsMemory");
}

}  // namespace
}  // namespace coldstream
