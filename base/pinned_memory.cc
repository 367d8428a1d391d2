#include "base/pinned_memory.h"

#include <utility>

namespace coldstream {

StatusOr<PinnedMemory> PinnedMemory::Allocate(Device* device, size_t bytes,
                                              const char* what) {
  PinnedMemory pinned;
  ASSIGN_OR_RETURN(pinned.memory_, HostMemory::Allocate(bytes, what));
  if (bytes == 0 || device == nullptr) return pinned;
  pinned.refusal_ = device->RegisterHostMemory(pinned.bytes());
  if (pinned.refusal_.ok()) pinned.device_ = device;
  return pinned;
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : memory_(std::move(other.memory_)),
      device_(std::exchange(other.device_, nullptr)),
      refusal_(std::move(other.refusal_)) {}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  PinnedMemory taken(std::move(other));
  std::swap(memory_, taken.memory_);
  std::swap(device_, taken.device_);
  std::swap(refusal_, taken.refusal_);
  return *this;
}

PinnedMemory::~PinnedMemory() {
  if (device_ != nullptr) device_->UnregisterHostMemory(memory_.bytes());
}

}  // namespace coldstream
