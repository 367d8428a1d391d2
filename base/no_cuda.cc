// Linked where there is no CUDA: the same symbols, so that callers hold no
// #ifdef.
#include "base/device.h"

namespace coldstream {

StatusOr<std::unique_ptr<Device>> CreateCudaDevice() {
  return absl::UnimplementedError(
      "this build has no CUDA support; use --device cpu");
}

}  // namespace coldstream
