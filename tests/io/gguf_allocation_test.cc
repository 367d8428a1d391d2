// Hostile counts and lengths must not make the parser take memory for them.
// This binary counts what `new` is asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "io/gguf.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace {
std::atomic<size_t> largest_allocation{0};
}  // namespace

// Not inlined: g++ 12 then sees malloc and delete as a pair that does not
// match.
[[gnu::noinline]] void* operator new(size_t bytes) {
  size_t known = largest_allocation;
  while (bytes > known &&
         !largest_allocation.compare_exchange_weak(known, bytes)) {
  }
  void* memory = std::malloc(bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace coldstream {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;
constexpr size_t kFewBytes = size_t{512} << 10;  // twice the parser's buffer

// Headers that promise far more than a header can hold.
std::vector<GgufBytes> HostileHeaders(uint64_t promised) {
  std::vector<GgufBytes> headers;
  headers.push_back(GgufBytes().Header(promised, 0));
  headers.push_back(GgufBytes().Header(0, promised));
  headers.push_back(GgufBytes().Header(0, 1).U64(promised));
  headers.push_back(GgufBytes().Header(1, 0).U64(promised));
  headers.push_back(
      GgufBytes().Header(0, 1).Key("k", GgufType::kString).U64(promised));
  for (const GgufType type : {GgufType::kU8, GgufType::kI64, GgufType::kF32,
                              GgufType::kString, GgufType::kBool}) {
    headers.push_back(GgufBytes().Header(0, 1).ArrayKey("k", type, promised));
    GgufBytes nested;
    nested.Header(0, 1).ArrayKey("k", GgufType::kArray, 1);
    headers.push_back(nested.Type(type).U64(promised));
  }
  GgufBytes strings;
  strings.Header(0, 1).ArrayKey("k", GgufType::kString, 1).U64(promised);
  headers.push_back(strings);
  return headers;
}

// `file_bytes`: sparse, so that "bytes left in the file" is no bound by itself.
void ExpectRefusedWithoutMemory(uint64_t promised, uint64_t file_bytes) {
  const TempDir dir;
  for (const GgufBytes& header : HostileHeaders(promised)) {
    const std::string path = dir.Write("m.gguf", header.bytes());
    if (file_bytes > 0) std::filesystem::resize_file(path, file_bytes);
    auto file = File::Open(path, DirectMode::kOff);
    ASSERT_THAT(file, IsOk());
    largest_allocation = 0;
    const auto parsed = ParseGguf(*std::move(file));
    EXPECT_LT(largest_allocation.load(), kFewBytes);
    EXPECT_FALSE(parsed.ok());
  }
}

TEST(GgufAllocationTest, TakesNoMemoryForCountsPastTheEndOfASmallFile) {
  for (const uint64_t promised :
       {uint64_t{1} << 20, kGib, 1000 * kGib, uint64_t{1} << 63, ~uint64_t{0}})
    ExpectRefusedWithoutMemory(promised, 0);
}

TEST(GgufAllocationTest, TakesNoMemoryForCountsThatOnlyTheWeightsWouldHold) {
  ExpectRefusedWithoutMemory(kGib, 40 * kGib);
  ExpectRefusedWithoutMemory(4 * kGib, 40 * kGib);
}

}  // namespace
}  // namespace coldstream
