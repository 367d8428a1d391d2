#include <unistd.h>

#include <chrono>
#include <cstring>
#include <optional>

#include "base/device.h"
#include "base/host_memory.h"
#include "base/system_limits.h"

namespace coldstream {
namespace {

class CpuEvent final : public Event {
 public:
  bool Ready() const override { return true; }
  Status Wait() override { return absl::OkStatus(); }
  StatusOr<double> SecondsSince(const Event& earlier) const override {
    const auto& other = static_cast<const CpuEvent&>(earlier);
    if (!recorded_ || !other.recorded_)
      return absl::FailedPreconditionError("an event was never recorded");
    return std::chrono::duration<double>(*recorded_ - *other.recorded_).count();
  }
  void Record() { recorded_ = std::chrono::steady_clock::now(); }

 private:
  std::optional<std::chrono::steady_clock::time_point> recorded_;
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
  Status Record(Event* event) override {
    static_cast<CpuEvent*>(event)->Record();
    return absl::OkStatus();
  }
  Status Wait(const Event&) override { return absl::OkStatus(); }
  Status Synchronize() override { return absl::OkStatus(); }
  void* native_handle() override { return nullptr; }
};

class CpuDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  const char* name() const override { return "cpu"; }
  StatusOr<DeviceMemoryInfo> MemoryInfo() override {
    const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
    return DeviceMemoryInfo{AvailableMemory().bytes, pages * kPageBytes};
  }

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
