#include "base/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

HostMemory Take(size_t bytes) {
  auto memory = HostMemory::Allocate(bytes, "a test");
  EXPECT_THAT(memory, IsOk());
  return *std::move(memory);
}

uintptr_t AddressOf(const HostMemory& memory) {
  return reinterpret_cast<uintptr_t>(memory.data());
}

// Whether the page at this address belongs to any mapping.
bool IsMapped(uintptr_t address) {
  return msync(reinterpret_cast<void*>(address), kPageBytes, MS_ASYNC) == 0 ||
         errno != ENOMEM;
}

TEST(HostMemory, IsZeroedAndWritableToTheLastByte) {
  for (const size_t bytes : {size_t{1}, kPageBytes, kPageBytes + 1,
                             kHugePageBytes, 3 * kHugePageBytes + 5}) {
    const HostMemory memory = Take(bytes);
    ASSERT_EQ(memory.size(), bytes);
    ASSERT_EQ(memory.bytes().size(), bytes);
    EXPECT_TRUE(std::all_of(memory.bytes().begin(), memory.bytes().end(),
                            [](std::byte b) { return b == std::byte{0}; }));
    memory.bytes().front() = std::byte{1};
    memory.bytes().back() = std::byte{2};
    EXPECT_EQ(memory.data()[bytes - 1], std::byte{2});
  }
}

TEST(HostMemory, StartsOnAPageAndOnAHugePageWhereItIsThatLarge) {
  EXPECT_EQ(AddressOf(Take(1)) % kPageBytes, 0u);
  EXPECT_EQ(AddressOf(Take(kHugePageBytes - 1)) % kPageBytes, 0u);
  EXPECT_EQ(AddressOf(Take(kHugePageBytes)) % kHugePageBytes, 0u);
  EXPECT_EQ(AddressOf(Take(5 * kHugePageBytes + 9)) % kHugePageBytes, 0u);
}

TEST(HostMemory, NoBytesAreNoMapping) {
  const HostMemory memory = Take(0);
  EXPECT_EQ(memory.data(), nullptr);
  EXPECT_TRUE(memory.bytes().empty());
}

TEST(HostMemory, GoesBackToTheSystemWhenItsOwnerEnds) {
  uintptr_t address = 0;
  {
    const HostMemory memory = Take(64 * kHugePageBytes);
    address = AddressOf(memory);
    ASSERT_TRUE(IsMapped(address));
  }
  EXPECT_FALSE(IsMapped(address));
}

TEST(HostMemory, MovingLeavesTheSourceEmpty) {
  HostMemory source = Take(kPageBytes);
  std::byte* const data = source.data();
  const HostMemory target(std::move(source));
  EXPECT_EQ(target.data(), data);
  EXPECT_EQ(source.data(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(source.size(), 0u);
}

TEST(HostMemory, MoveAssignmentFreesWhatWasHeldAtOnce) {
  HostMemory target = Take(64 * kHugePageBytes);
  HostMemory source = Take(kPageBytes);
  const uintptr_t old = AddressOf(target);
  const uintptr_t kept = AddressOf(source);
  target = std::move(source);
  EXPECT_EQ(AddressOf(target), kept);
  EXPECT_FALSE(IsMapped(old));
  EXPECT_TRUE(IsMapped(kept));
}

TEST(HostMemory, MovingOntoItselfKeepsIt) {
  HostMemory memory = Take(kPageBytes);
  HostMemory& alias = memory;
  const uintptr_t address = AddressOf(memory);
  memory = std::move(alias);
  EXPECT_EQ(AddressOf(memory), address);
  EXPECT_TRUE(IsMapped(address));
}

TEST(HostMemory, MoreThanThereIsNamesWhatItWasFor) {
  constexpr size_t kMost = std::numeric_limits<size_t>::max();
  for (const size_t bytes : {kMost, kMost - kHugePageBytes, kMost / 2}) {
    EXPECT_THAT(HostMemory::Allocate(bytes, "the KV cache"),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("the KV cache"),
                               HasSubstr(std::to_string(bytes)))));
  }
}

}  // namespace
}  // namespace coldstream
