// Where an engine computes: the CPU, or a device with memory of its own and the
// kernels for it.
//
//   StatusOr<OpenedDevice> opened = OpenComputeDevice(DeviceChoice::kAuto);
//   options.gpu = opened->gpu;  // null: the CPU
//   if (!opened->fallback.empty()) warn(opened->fallback);
#ifndef COLDSTREAM_RUNTIME_COMPUTE_DEVICE_H_
#define COLDSTREAM_RUNTIME_COMPUTE_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/device.h"
#include "base/status.h"
#include "kernels/pass_ops.h"

namespace coldstream {

enum class DeviceChoice { kCpu, kCuda, kAuto };

// As CreateCudaPassOps, CudaPassOpsBytes and CheckCudaPassLimits.
struct DeviceKernels {
  std::function<StatusOr<std::unique_ptr<PassOps>>(Device*, Stream*,
                                                   const PassLimits&)>
      create;
  std::function<uint64_t(const PassLimits&)> bytes;
  std::function<Status(const PassLimits&)> check;
};

struct ComputeDevice {
  std::unique_ptr<Device> device;
  DeviceKernels kernels;
};

DeviceKernels CudaKernels();

struct OpenedDevice {
  // Also owned by the engines that use it. Null: the CPU.
  std::shared_ptr<ComputeDevice> gpu;
  // Why kAuto chose the CPU; empty if it did not.
  std::string fallback;
  // The fallback is worth a line to the user: this build could use a GPU.
  bool unexpected = false;
};

// Errors: of kCuda, those of CreateCudaDevice; never of kCpu and kAuto.
StatusOr<OpenedDevice> OpenComputeDevice(DeviceChoice choice);

// What is left of free device memory for a model: 1/16 of all of it, at least
// 256 MiB, stays for others.
uint64_t DefaultVramBudget(const DeviceMemoryInfo& memory);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_COMPUTE_DEVICE_H_
