#include "runtime/compute_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace coldstream {

DeviceKernels CudaKernels() {
  return {.create = &CreateCudaPassOps,
          .bytes = &CudaPassOpsBytes,
          .check = &CheckCudaPassLimits};
}

StatusOr<OpenedDevice> OpenComputeDevice(DeviceChoice choice) {
  OpenedDevice opened;
  if (choice == DeviceChoice::kCpu) return opened;
  StatusOr<std::unique_ptr<Device>> device = CreateCudaDevice();
  if (device.ok()) {
    opened.gpu = std::make_shared<ComputeDevice>(
        ComputeDevice{*std::move(device), CudaKernels()});
    return opened;
  }
  if (choice == DeviceChoice::kCuda) return device.status();
  opened.fallback =
      absl::StrFormat("computing on the CPU: %s", MessageOf(device.status()));
  opened.unexpected = !absl::IsUnimplemented(device.status());
  return opened;
}

uint64_t DefaultVramBudget(const DeviceMemoryInfo& memory) {
  const uint64_t head_room = std::max(memory.total / 16, uint64_t{256} << 20);
  return memory.free > head_room ? memory.free - head_room : 0;
}

}  // namespace coldstream
