#include "base/staging_ring.h"

#include <cstring>
#include <string>
#include <utility>

#include "base/byte_units.h"
#include "gtest/gtest.h"
#include "tests/support/deferred_device.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::unique_ptr<Device> DeviceThatPins(uint64_t bytes) {
  return CreateDeferredDevice({.faults = {.pinned_bytes = bytes}});
}

TEST(StagingRingTest, BuffersFillTheBytesAndAreAllPinned) {
  const auto device = DeviceThatPins(DeviceFaults::kUnbounded);
  const auto ring = StagingRing::Create(device.get(), 10 * kMiB, 3 * kMiB);
  ASSERT_THAT(ring, IsOk());
  EXPECT_EQ(ring->size(), 3u);
  EXPECT_EQ(ring->bytes(), 9 * kMiB);
  EXPECT_EQ(ring->pinned_bytes(), 9 * kMiB);
  EXPECT_THAT(ring->warning(), IsEmpty());
  for (size_t i = 0; i < ring->size(); ++i) {
    EXPECT_EQ(ring->buffer(i).size(), 3 * kMiB);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(ring->buffer(i).data()) % 4096, 0u);
  }
}

TEST(StagingRingTest, OneBufferIsThereHoweverFewTheBytes) {
  const auto device = DeviceThatPins(DeviceFaults::kUnbounded);
  const auto ring = StagingRing::Create(device.get(), 0, 5000);
  ASSERT_THAT(ring, IsOk());
  EXPECT_EQ(ring->size(), 1u);
  EXPECT_EQ(ring->bytes(), 8192u);  // whole pages
}

TEST(StagingRingTest, ShrinksToWhatIsPinnedWhereTwoBuffersAre) {
  const auto device = DeviceThatPins(5 * kMiB / 2);
  const auto ring = StagingRing::Create(device.get(), 8 * kMiB, kMiB);
  ASSERT_THAT(ring, IsOk());
  EXPECT_EQ(ring->size(), 2u);
  EXPECT_EQ(ring->pinned_bytes(), 2 * kMiB);
  EXPECT_THAT(ring->warning(),
              AllOf(HasSubstr("2.0 MiB of 8.0"), HasSubstr("not registered"),
                    Not(HasSubstr("\n"))));
}

TEST(StagingRingTest, GoesOnPageableWhereFewerThanTwoBuffersArePinned) {
  for (const uint64_t pinned : {uint64_t{0}, kMiB}) {
    const auto device = DeviceThatPins(pinned);
    const auto ring = StagingRing::Create(device.get(), 8 * kMiB, kMiB);
    ASSERT_THAT(ring, IsOk());
    EXPECT_EQ(ring->size(), 8u);
    EXPECT_EQ(ring->pinned_bytes(), pinned);
    EXPECT_THAT(ring->warning(), HasSubstr("8.0 MiB of 8.0"));
  }
}

TEST(StagingRingTest, GivesItsPinnedMemoryBack) {
  const auto device = DeviceThatPins(4 * kMiB);
  for (int i = 0; i < 3; ++i) {
    auto ring = StagingRing::Create(device.get(), 4 * kMiB, kMiB);
    ASSERT_THAT(ring, IsOk());
    EXPECT_EQ(ring->pinned_bytes(), 4 * kMiB) << "round " << i;
    StagingRing moved = *std::move(ring);
    EXPECT_EQ(moved.pinned_bytes(), 4 * kMiB);
  }
}

TEST(StagingRingTest, CopiesFromItArriveHoweverItIsPinned) {
  for (const uint64_t pinned : {uint64_t{0}, kMiB, 4 * kMiB}) {
    const auto device = DeviceThatPins(pinned);
    const auto ring = StagingRing::Create(device.get(), 4 * kMiB, kMiB);
    ASSERT_THAT(ring, IsOk());
    const auto stream = *device->NewStream();
    for (size_t i = 0; i < ring->size(); ++i) {
      auto slot = *device->Allocate(kMiB, "slot");
      std::memset(ring->buffer(i).data(), 7, kMiB);
      ASSERT_THAT(
          stream->CopyToDevice(slot.data(), ring->buffer(i).data(), kMiB),
          IsOk());
      ASSERT_THAT(stream->Synchronize(), IsOk());
      EXPECT_EQ(slot.data()[kMiB - 1], std::byte{7});
    }
  }
}

TEST(StagingRingTest, ABufferNobodyCanHaveIsAStatus) {
  const auto device = DeviceThatPins(0);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1} << 60, ~uint64_t{0}})
    EXPECT_THAT(StagingRing::Create(device.get(), kMiB, bytes),
                StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace coldstream
