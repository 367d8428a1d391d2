#include "kernels/cuda/attention.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace coldstream::cuda {

Status Attend(const AttentionCall& call, Stream* stream) {
  const KvLayer& layer = call.layer;
  if (layer.key_dim > kMostHeadDim || layer.value_dim > kMostHeadDim) {
    return absl::UnimplementedError(
        absl::StrFormat("heads of %d and %d values; on CUDA at most %d",
                        layer.key_dim, layer.value_dim, kMostHeadDim));
  }
  const auto scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(layer.key_dim)));
  RETURN_IF_ERROR(AttendPrefill(call, scale, stream));
  RETURN_IF_ERROR(AttendDecode(call, scale, stream));
  return CombineSplits(call, stream);
}

}  // namespace coldstream::cuda
