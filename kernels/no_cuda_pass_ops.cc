// Linked where there is no CUDA: the same symbols, so that callers hold no
// #ifdef.
#include "kernels/pass_ops.h"

namespace coldstream {

StatusOr<std::unique_ptr<PassOps>> CreateCudaPassOps(Device*, Stream*,
                                                     const PassLimits&) {
  return absl::UnimplementedError(
      "this build has no CUDA support; use --device cpu");
}

uint64_t CudaPassOpsBytes(const PassLimits&) { return 0; }
uint64_t CudaPassOpsHostBytes(const PassLimits&) { return 0; }

}  // namespace coldstream
