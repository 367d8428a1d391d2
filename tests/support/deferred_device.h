// A device of the kind CUDA in host memory that does nothing when it is asked
// to: copies, kernels, records and waits are queued, and run later in a legal
// order drawn from a seed. A missing Wait or Record fails on a laptop.
//
// Legal: an operation runs any time after those before it on its stream and
// after the work of the events its stream waited for. Events are as CUDA's: a
// Wait takes the latest Record of that moment, an event never recorded is
// ready, recording again is allowed. A seed decides how much work is done at
// calls that need not wait (none, some, all, or now one now the other), whether
// those that must wait do only what they wait for, and which stream is faster.
// A copy is two steps, poison of the destination and then the write; others may
// work in between, so that who did not wait reads kPoison (as floats, NaN).
//
//   auto device = CreateDeferredDevice({.seed = seed});
//   auto* queue = static_cast<simt::KernelQueue*>(stream->native_handle());
//   queue->Enqueue([=] { out[0] = in[0]; });   // runs in its stream's order
//
// Memory is of the heap, page-aligned, filled with kPoison when freed: under
// AddressSanitizer a kernel that leaves an allocation, or work that comes after
// its memory was freed, is seen. Freeing what a queued copy needs is a CHECK.
// Its clock counts steps, a microsecond each.
//
// Errors: as the faults ask; an operation that fails does not do its work, and
// the next call that returns a Status gives its Internal, once.
// Thread-safety: as Device; one mutex, held while a kernel runs.
// Lifetime: work left when the device goes is run then.
#ifndef COLDSTREAM_TESTS_SUPPORT_DEFERRED_DEVICE_H_
#define COLDSTREAM_TESTS_SUPPORT_DEFERRED_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "base/device.h"

namespace coldstream {

// What goes wrong. Calls and operations are counted from 0, operations in the
// order they are queued.
struct DeviceFaults {
  static constexpr int64_t kNever = -1;
  static constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max();

  int64_t refuse_allocation = kNever;  // this call of Allocate
  uint64_t pinned_bytes = kUnbounded;  // RegisterHostMemory refuses above
  int64_t fail_copies_from = kNever;   // this copy and all after it
  int64_t fail_kernels_from = kNever;  // this kernel and all after it
};

// What the copies that were asked for move, in bytes.
struct CopiedBytes {
  std::atomic<uint64_t> to_device{0};
  std::atomic<uint64_t> to_host{0};
};

struct DeferredDeviceOptions {
  uint64_t seed = 1;
  uint64_t memory_bytes = uint64_t{8} << 30;  // Allocate refuses above, in all
  DeviceFaults faults = {};
  std::shared_ptr<CopiedBytes> copied = nullptr;  // counted there, if given
};

inline constexpr std::byte kPoison{0xff};

std::unique_ptr<Device> CreateDeferredDevice(
    const DeferredDeviceOptions& options);

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_DEFERRED_DEVICE_H_
