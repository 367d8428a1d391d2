#include "base/prefault.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/host_memory.h"

namespace coldstream {
namespace {

// Whoever fills the memory meanwhile must find it as filled.
TEST(PrefaultTest, WhatIsWrittenMeanwhileStays) {
  for (int round = 0; round < 8; ++round) {
    auto memory = HostMemory::Allocate(size_t{24} << 20, "test");
    ASSERT_TRUE(memory.ok());
    {
      const Prefault prefault(memory->bytes());
      std::memset(memory->data(), 7, memory->size());
    }
    for (const std::byte value : memory->bytes())
      ASSERT_EQ(value, std::byte{7});
  }
}

TEST(PrefaultTest, EndsWhereItIsAndTakesNothingOfNothing) {
  auto memory = HostMemory::Allocate(size_t{256} << 20, "test");
  ASSERT_TRUE(memory.ok());
  { const Prefault prefault(memory->bytes()); }
  EXPECT_EQ(memory->data()[0], std::byte{0});
  const Prefault nothing(std::span<std::byte>{});
}

}  // namespace
}  // namespace coldstream
