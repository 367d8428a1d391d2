// Products with weights in blocks of 32 values; activations kQ8_32.

#include "kernels/cuda/blocks_32.cuh"
#include "kernels/cuda/matvec.h"
#include "kernels/cuda/matvec_blocks.cuh"

namespace coldstream::cuda {

Status MatvecBlocks32(const MatmulArgs& args, Stream* stream) {
  switch (args.weight.type) {
    case DType::kQ8_0:
      return LaunchMatvecBlocks<Q8_0Block>(args, stream);
    case DType::kQ4_0:
      return LaunchMatvecBlocks<Q4_0Block>(args, stream);
    case DType::kQ4_1:
      return LaunchMatvecBlocks<Q4_1Block>(args, stream);
    case DType::kQ5_0:
      return LaunchMatvecBlocks<Q5_0Block>(args, stream);
    case DType::kQ5_1:
      return LaunchMatvecBlocks<Q5_1Block>(args, stream);
    case DType::kIQ4_NL:
      return LaunchMatvecBlocks<IQ4_NLBlock>(args, stream);
    case DType::kMXFP4:
      return LaunchMatvecBlocks<MXFP4Block>(args, stream);
    default:
      CHECK(!"a type with blocks of 32 values");
  }
  return absl::OkStatus();
}

}  // namespace coldstream::cuda
