#include "tests/simt/fiber.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/host_memory.h"

namespace coldstream::simt {
namespace {

// A fiber that shows where a variable of its lies, and is never gone back to.
struct Visit {
  Fiber caller;
  std::optional<Fiber> fiber;
  std::byte* inside = nullptr;

  static void Body(void* argument) {
    auto* visit = static_cast<Visit*>(argument);
    std::byte variable[64];
    std::memset(variable, 1, sizeof(variable));
    visit->inside = variable;
    Fiber::Switch(*visit->fiber, visit->caller);
  }
};

TEST(FiberTest, ASwitchGoesToTheBodyAndBack) {
  Visit visit;
  visit.fiber.emplace(&Visit::Body, &visit);
  Fiber::Switch(visit.caller, *visit.fiber);
  ASSERT_NE(visit.inside, nullptr);
  EXPECT_EQ(visit.inside[63], std::byte{1});
}

// AddressSanitizer sees to the failure: it marks what lies around variables.
TEST(FiberTest, MemoryMappedWhereAStackWasIsMemoryLikeAnyOther) {
  Visit visit;
  visit.fiber.emplace(&Visit::Body, &visit);
  Fiber::Switch(visit.caller, *visit.fiber);
  std::byte* const page =
      visit.inside - reinterpret_cast<uintptr_t>(visit.inside) % kPageBytes;
  visit.fiber.reset();
  void* const mapped =
      mmap(page, kPageBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(mapped, page);
  std::memset(page, 2, kPageBytes);
  EXPECT_EQ(page[0], std::byte{2});
  munmap(mapped, kPageBytes);
}

}  // namespace
}  // namespace coldstream::simt
