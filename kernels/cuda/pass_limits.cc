// What CUDA's kernels refuse, in every build: plans are also made where there
// is no CUDA.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "kernels/cuda/attention.h"
#include "kernels/pass_ops.h"

namespace coldstream {

Status CheckCudaPassLimits(const PassLimits& limits) {
  const int64_t widest = std::max(limits.key_dim, limits.value_dim);
  if (widest <= cuda::kMostHeadDim) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrFormat("this model's heads have %d values, and the kernels for "
                      "CUDA take at most "
                      "%d; use --device cpu",
                      widest, cuda::kMostHeadDim));
}

}  // namespace coldstream
