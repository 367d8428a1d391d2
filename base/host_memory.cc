#include "base/host_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/align.h"
#include "base/check.h"

namespace coldstream {

HostMemory::HostMemory(HostMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)) {}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  // What this held goes back to the system now, not when `other` ends.
  HostMemory taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  std::swap(mapping_, taken.mapping_);
  std::swap(mapping_bytes_, taken.mapping_bytes_);
  return *this;
}

HostMemory::~HostMemory() {
  if (mapping_ != nullptr) CHECK(munmap(mapping_, mapping_bytes_) == 0);
}

StatusOr<HostMemory> HostMemory::Allocate(size_t bytes, const char* what) {
  HostMemory memory;
  if (bytes == 0) return memory;
  // Head room to move the start to a 2 MiB boundary; untouched pages cost
  // address space only.
  const size_t alignment =
      bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  const size_t head_room = alignment - kPageBytes;
  if (bytes > std::numeric_limits<size_t>::max() - head_room) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "cannot map %d bytes for %s: no address space", bytes, what));
  }
  const size_t mapping_bytes = bytes + head_room;
  void* mapping = mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "cannot map %d bytes for %s: %s", bytes, what, std::strerror(errno)));
  }
  memory.mapping_ = static_cast<std::byte*>(mapping);
  memory.mapping_bytes_ = mapping_bytes;
  const uintptr_t start = reinterpret_cast<uintptr_t>(mapping);
  const uintptr_t aligned = AlignUp(start, alignment);
  memory.data_ = memory.mapping_ + (aligned - start);
  memory.size_ = bytes;
  // Advice only: without transparent huge pages the memory works all the same.
  if (bytes >= kHugePageBytes) {
    (void)madvise(memory.data_, bytes / kHugePageBytes * kHugePageBytes,
                  MADV_HUGEPAGE);
  }
  return memory;
}

}  // namespace coldstream
