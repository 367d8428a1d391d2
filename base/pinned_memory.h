// Host memory that a device copies to and from beside the host: page-aligned
// and registered with it, if the system allows that; else plain host memory,
// which costs speed and nothing else.
#ifndef COLDSTREAM_BASE_PINNED_MEMORY_H_
#define COLDSTREAM_BASE_PINNED_MEMORY_H_

#include <cstddef>
#include <span>

#include "base/device.h"
#include "base/host_memory.h"
#include "base/status.h"

namespace coldstream {

// Move-only; unregistered before it is unmapped. The device outlives it.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  // Not registered if `device` is null. `what` names it in the error. Errors:
  // ResourceExhausted (no memory at all).
  static StatusOr<PinnedMemory> Allocate(Device* device, size_t bytes,
                                         const char* what);
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;
  ~PinnedMemory();

  std::byte* data() const { return memory_.data(); }
  size_t size() const { return memory_.size(); }
  std::span<std::byte> bytes() const { return memory_.bytes(); }

  bool pinned() const { return device_ != nullptr; }
  const Status& refusal() const { return refusal_; }  // why it is not

 private:
  HostMemory memory_;
  Device* device_ = nullptr;  // it is registered with
  Status refusal_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_PINNED_MEMORY_H_
