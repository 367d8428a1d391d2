// Host buffers between disk and device: the reader fills them, a copy stream
// empties them. Page-aligned, as O_DIRECT needs it, and registered with the
// device, as copies beside the host need it.
//
// Buffers are allocated and registered one by one, because some systems pin
// little. Where one is refused, the ring shrinks to those that are pinned if
// two are (enough to read into one while the other is copied); else all others
// stay pageable, which costs speed and nothing else. Either gives one warning.
//
//   ASSIGN_OR_RETURN(auto ring, StagingRing::Create(device, 512 << 20, bytes));
//   if (!ring.warning().empty()) warn(ring.warning());
//   ring.buffer(i);  // i < ring.size()
//
// Who may use which buffer when is its user's business: no lease, no lock.
// Units: bytes. Lifetime: the device outlives the ring, the ring all queued
// copies from it.
#ifndef COLDSTREAM_BASE_STAGING_RING_H_
#define COLDSTREAM_BASE_STAGING_RING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/device.h"
#include "base/pinned_memory.h"
#include "base/status.h"

namespace coldstream {

class StagingRing {
 public:
  // As many buffers of `buffer_bytes` (rounded up to a page) as fit in `bytes`,
  // at least one. Errors: ResourceExhausted (no memory even for the first).
  static StatusOr<StagingRing> Create(Device* device, uint64_t bytes,
                                      uint64_t buffer_bytes);

  StagingRing(StagingRing&& other) noexcept = default;
  StagingRing& operator=(StagingRing&& other) noexcept = default;

  size_t size() const { return buffers_.size(); }
  std::span<std::byte> buffer(size_t i) const { return buffers_[i].bytes(); }
  uint64_t bytes() const;         // of all buffers
  uint64_t pinned_bytes() const;  // of those that are registered
  // One line where the ring is not what was asked for, or empty.
  const std::string& warning() const { return warning_; }

 private:
  StagingRing() = default;

  std::vector<PinnedMemory> buffers_;
  std::string warning_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_STAGING_RING_H_
