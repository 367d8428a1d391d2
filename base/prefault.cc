#include "base/prefault.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/check.h"
#include "base/host_memory.h"

namespace coldstream {
namespace {

// glibc 2.36 may be built on older kernel headers.
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE
constexpr size_t kStepBytes = 2 * kHugePageBytes;

}  // namespace

Prefault::Prefault(std::span<std::byte> memory) {
  CHECK(reinterpret_cast<uintptr_t>(memory.data()) % kPageBytes == 0);
  if (memory.empty()) return;
  thread_ = std::thread([this, memory] { Run(memory); });
}

Prefault::~Prefault() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void Prefault::Run(std::span<std::byte> memory) {
  while (!memory.empty() && !stop_.load(std::memory_order_relaxed)) {
    const size_t step = std::min(memory.size(), kStepBytes);
    if (madvise(memory.data(), step, kPopulateWrite) != 0) return;
    memory = memory.subspan(step);
  }
}

}  // namespace coldstream
