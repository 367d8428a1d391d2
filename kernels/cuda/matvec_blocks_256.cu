// Products with weights in blocks of 256 values (the K-quants and IQ4_XS);
// activations kQ8_256.

#include "kernels/cuda/blocks_256.cuh"
#include "kernels/cuda/matvec.h"
#include "kernels/cuda/matvec_blocks.cuh"

namespace coldstream::cuda {

Status MatvecBlocks256(const MatmulArgs& args, Stream* stream) {
  switch (args.weight.type) {
    case DType::kQ2_K:
      return LaunchMatvecBlocks<Q2_KBlock>(args, stream);
    case DType::kQ3_K:
      return LaunchMatvecBlocks<Q3_KBlock>(args, stream);
    case DType::kQ4_K:
      return LaunchMatvecBlocks<Q4_KBlock>(args, stream);
    case DType::kQ5_K:
      return LaunchMatvecBlocks<Q5_KBlock>(args, stream);
    case DType::kQ6_K:
      return LaunchMatvecBlocks<Q6_KBlock>(args, stream);
    case DType::kIQ4_XS:
      return LaunchMatvecBlocks<IQ4_XSBlock>(args, stream);
    default:
      CHECK(!"a type with blocks of 256 values");
  }
  return absl::OkStatus();
}

}  // namespace coldstream::cuda
