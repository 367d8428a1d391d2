// Dense matrix products on a stream: cuBLAS on the GPU, loops in the tests'
// shim (tests/simt/gemm.cc).
//
// Sums are F32 whatever the inputs; their order is the library's, the same
// whenever shape and alignment are the same. The inputs lie at multiples of 16
// bytes. Nothing is allocated after Create.
// Thread-safety: one call at a time.
#ifndef COLDSTREAM_KERNELS_CUDA_GEMM_H_
#define COLDSTREAM_KERNELS_CUDA_GEMM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/device.h"
#include "base/status.h"

namespace coldstream::cuda {

enum class GemmType : uint8_t {
  kF16,  // both inputs F16: exact products, on tensor cores
  kF32,  // both F32, multiplied and added as such
};

// out[t, r] = sum over i of weights[r, i] * x[t, i].
struct GemmArgs {
  GemmType type = GemmType::kF16;
  const void* weights = nullptr;  // [rows, k]
  const void* x = nullptr;        // [tokens, k]
  int64_t rows = 0;
  int64_t tokens = 0;
  int64_t k = 0;
  float* out = nullptr;    // [tokens, out_stride]
  int64_t out_stride = 0;  // floats
};

// Device memory that the library may use in a product.
// Source: cuBLAS manual, cublasSetWorkspace: what Hopper asks for.
inline constexpr size_t kGemmWorkspaceBytes = size_t{32} << 20;

class Gemm {
 public:
  // `stream` and `workspace`, device memory of kGemmWorkspaceBytes, must
  // outlive it. Errors: Unavailable (the library is not installed, or not for
  // this driver), Internal.
  static StatusOr<std::unique_ptr<Gemm>> Create(Stream* stream,
                                                std::span<std::byte> workspace);
  virtual ~Gemm() = default;

  // Errors: Internal.
  virtual Status Run(const GemmArgs& args) = 0;
};

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_GEMM_H_
