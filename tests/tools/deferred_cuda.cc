// Linked before the libraries into a coldstream program of the tests: its CUDA
// device is one that does everything late (tests/support/deferred_device.h),
// computing with the CPU's operations.
#include <cstdlib>

#include "base/device.h"
#include "kernels/pass_ops.h"
#include "tests/support/deferred_device.h"
#include "tests/support/queued_pass_ops.h"

namespace coldstream {

StatusOr<std::unique_ptr<Device>> CreateCudaDevice() {
  DeferredDeviceOptions options{.memory_bytes = uint64_t{1} << 30};
  if (const char* bytes = std::getenv("COLDSTREAM_TEST_VRAM"))
    options.memory_bytes = std::strtoull(bytes, nullptr, 10);
  return CreateDeferredDevice(options);
}

StatusOr<std::unique_ptr<PassOps>> CreateCudaPassOps(Device*, Stream* stream,
                                                     const PassLimits& limits) {
  ASSIGN_OR_RETURN(const Ops* ops, SelectOps());
  return QueuedPassOps::CreateWith(ops, stream, limits);
}
uint64_t CudaPassOpsBytes(const PassLimits& limits) {
  return CpuPassOpsBytes(limits);
}
uint64_t CudaPassOpsHostBytes(const PassLimits&) { return 0; }

}  // namespace coldstream
