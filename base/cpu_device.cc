#include <cstring>

#include "base/device.h"
#include "base/host_memory.h"

namespace coldstream {
namespace {

class CpuEvent final : public Event {
 public:
  bool Ready() const override { return true; }
  Status Wait() override { return absl::OkStatus(); }
};

// Work is done when the call returns, so there is nothing to wait for.
class CpuStream final : public Stream {
 public:
  Status CopyToDevice(std::byte* to, const std::byte* from,
                      size_t bytes) override {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  Status CopyToHost(std::byte* to, const std::byte* from,
                    size_t bytes) override {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  Status Record(Event*) override { return absl::OkStatus(); }
  Status Wait(const Event&) override { return absl::OkStatus(); }
  Status Synchronize() override { return absl::OkStatus(); }
};

class CpuDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  const char* name() const override { return "cpu"; }

  StatusOr<DeviceMemory> Allocate(size_t bytes, const char* what) override {
    ASSIGN_OR_RETURN(HostMemory memory, HostMemory::Allocate(bytes, what));
    auto* owned = new HostMemory(std::move(memory));
    return DeviceMemory(owned->bytes(),
                        {owned, [](void* pointer) {
                           delete static_cast<HostMemory*>(pointer);
                         }});
  }
  Status RegisterHostMemory(std::span<std::byte>) override {
    return absl::OkStatus();
  }
  void UnregisterHostMemory(std::span<std::byte>) override {}
  StatusOr<std::unique_ptr<Stream>> NewStream() override {
    return std::make_unique<CpuStream>();
  }
  StatusOr<std::unique_ptr<Event>> NewEvent() override {
    return std::make_unique<CpuEvent>();
  }
};

}  // namespace

std::unique_ptr<Device> CreateCpuDevice() {
  return std::make_unique<CpuDevice>();
}

}  // namespace coldstream
