#include "base/staging_ring.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/align.h"
#include "base/host_memory.h"

namespace coldstream {
namespace {

// One to read into, one to copy from.
constexpr size_t kLeastPinnedBuffers = 2;

double MiB(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

StatusOr<StagingRing> StagingRing::Create(Device* device, uint64_t bytes,
                                          uint64_t buffer_bytes) {
  if (buffer_bytes == 0 ||
      buffer_bytes > std::numeric_limits<uint64_t>::max() - kPageBytes)
    return absl::ResourceExhaustedError(
        absl::StrFormat("no staging buffer can have %d bytes", buffer_bytes));
  buffer_bytes = AlignUp(buffer_bytes, kPageBytes);
  const auto count =
      static_cast<size_t>(std::max<uint64_t>(1, bytes / buffer_bytes));
  StagingRing ring;
  Status refusal;  // the first: of memory, or of its registration
  bool registers = true;
  while (ring.size() < count) {
    StatusOr<PinnedMemory> buffer = PinnedMemory::Allocate(
        registers ? device : nullptr, buffer_bytes, "a staging buffer");
    if (!buffer.ok()) {
      if (ring.size() == 0) return buffer.status();
      refusal.Update(buffer.status());
      break;
    }
    refusal.Update(buffer->refusal());
    if (registers && !buffer->pinned()) {
      registers = false;
      if (ring.size() >= kLeastPinnedBuffers) break;
    }
    ring.buffers_.push_back(*std::move(buffer));
  }
  if (!refusal.ok()) {
    ring.warning_ = absl::StrFormat(
        "staging: %.1f MiB of %.1f, %.1f MiB of them pinned; uploads may be "
        "slower (%s)",
        MiB(ring.bytes()), MiB(count * buffer_bytes), MiB(ring.pinned_bytes()),
        MessageOf(refusal));
  }
  return ring;
}

uint64_t StagingRing::bytes() const {
  uint64_t sum = 0;
  for (const PinnedMemory& buffer : buffers_) sum += buffer.size();
  return sum;
}

uint64_t StagingRing::pinned_bytes() const {
  uint64_t sum = 0;
  for (const PinnedMemory& buffer : buffers_)
    if (buffer.pinned()) sum += buffer.size();
  return sum;
}

}  // namespace coldstream
