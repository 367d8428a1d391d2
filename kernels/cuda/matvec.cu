#include <cstdint>

#include "base/check.h"
#include "kernels/cuda/matvec.h"

namespace coldstream::cuda {

Status Matvec(const MatmulArgs& args, Stream* stream) {
  CHECK(args.tokens >= 1 && args.tokens <= kMatvecTokens);
  // Floats of rows that are not whole vectors are loaded one by one.
  CHECK(args.weight.cols % 8 != 0 ||
        (reinterpret_cast<uintptr_t>(args.activations) % 16 == 0 &&
         args.activation_stride % 16 == 0));
  if (args.weight.rows == 0) return absl::OkStatus();
  switch (InfoOf(args.weight.type).block_elements) {
    case 1:
      return MatvecFloats(args, stream);
    case 32:
      return MatvecBlocks32(args, stream);
    default:
      return MatvecBlocks256(args, stream);
  }
}

}  // namespace coldstream::cuda
