// Where weights and activations live, and the queues that work on them.
//
// Three small interfaces, of which everything above knows no implementation:
// `cpu` here, `cuda` with the toolkit, and in tests devices that run queued
// work late and in any legal order. On the CPU, device memory is host memory:
// the reader fills a slot and kernels read it, nothing is copied.
//
//   stream->CopyToDevice(slot, staging, bytes);
//   stream->Record(ready.get());        // the copy's event
//   compute->Wait(ready.get());         // on the device; the host goes on
//
// Order: work on one stream runs in order; between streams only Wait orders.
// Host memory given to a copy must stay until the copy is done.
// Thread-safety: a device's methods may be called from any thread, a stream's
// and an event's from one thread at a time.
#ifndef COLDSTREAM_BASE_DEVICE_H_
#define COLDSTREAM_BASE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/status.h"

namespace coldstream {

enum class DeviceKind { kCpu, kCuda };

// Move-only owner of memory of a device; gone with the object.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // `owner` keeps the bytes alive and frees them.
  DeviceMemory(std::span<std::byte> bytes,
               std::unique_ptr<void, void (*)(void*)> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}
  DeviceMemory(DeviceMemory&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})),
        owner_(std::move(other.owner_)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    bytes_ = std::exchange(other.bytes_, {});
    owner_ = std::move(other.owner_);
    return *this;
  }

  // Addresses of the device: the host may touch them only on the CPU.
  std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
  std::unique_ptr<void, void (*)(void*)> owner_{nullptr, [](void*) {}};
};

// A point in a stream's work, recorded by Stream::Record.
class Event {
 public:
  virtual ~Event() = default;
  // True once the work before the latest Record is done; true if never
  // recorded.
  virtual bool Ready() const = 0;
  // Blocks the host until Ready. Errors: Internal (the work failed).
  virtual Status Wait() = 0;
  // Seconds of the device's clock from `earlier` to this event, both recorded
  // and ready. Errors: FailedPrecondition (one of them is not), Internal.
  virtual StatusOr<double> SecondsSince(const Event& earlier) const = 0;
};

// Every call may return Internal: an error of the device, of this call or of
// earlier work, cleared before it is returned so that it poisons nothing later.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Status CopyToDevice(std::byte* to, const std::byte* from,
                              size_t bytes) = 0;
  virtual Status CopyToHost(std::byte* to, const std::byte* from,
                            size_t bytes) = 0;
  virtual Status Record(Event* event) = 0;
  // Later work of this stream begins only after `event` is ready.
  virtual Status Wait(const Event& event) = 0;
  // Blocks the host until all work queued so far is done.
  virtual Status Synchronize() = 0;
  // What kernels/cuda/launch.cuh puts kernels on: a cudaStream_t; of a device
  // of the tests, its queue; null on the CPU, whose kernels are just called.
  virtual void* native_handle() = 0;
};

// Ends what is queued on `stream`, before the memory it works on goes, and
// drops its errors: a call that returns one may have ended early, and the error
// may be of other work.
inline void SettleStream(Stream* stream) {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries && !stream->Synchronize().ok(); ++i) {
  }
}

struct DeviceMemoryInfo {
  uint64_t free = 0;  // bytes, as the driver sees it now
  uint64_t total = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual const char* name() const = 0;  // "cpu", or the card's own name

  // Errors: Internal. On the CPU, what the machine and its cgroup leave.
  virtual StatusOr<DeviceMemoryInfo> MemoryInfo() = 0;

  // Zeroed memory, at least page-aligned. `what` names it in the error.
  // Errors: ResourceExhausted. Lifetime: the device outlives the memory, the
  // memory all queued work that uses it.
  virtual StatusOr<DeviceMemory> Allocate(size_t bytes, const char* what) = 0;

  // Prepares host memory for copies that run beside the host. A refusal costs
  // speed, not correctness. Errors: ResourceExhausted, Unavailable.
  virtual Status RegisterHostMemory(std::span<std::byte> memory) = 0;
  virtual void UnregisterHostMemory(std::span<std::byte> memory) = 0;

  virtual StatusOr<std::unique_ptr<Stream>> NewStream() = 0;
  virtual StatusOr<std::unique_ptr<Event>> NewEvent() = 0;
};

// Device memory is HostMemory, streams run at once, events are always ready.
std::unique_ptr<Device> CreateCpuDevice();

// The first CUDA device. Errors: Unimplemented (built without CUDA),
// Unavailable (no driver or no device; the reason in the message).
StatusOr<std::unique_ptr<Device>> CreateCudaDevice();

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_DEVICE_H_
