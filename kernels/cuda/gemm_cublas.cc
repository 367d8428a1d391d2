// cuBLAS, opened at run time: a binary that can use a card starts on machines
// without the library too, and says what is missing when it is asked for.

#include <cublas_v2.h>
#include <dlfcn.h>

#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "kernels/cuda/gemm.h"

#define COLDSTREAM_QUOTE_INNER(text) #text
#define COLDSTREAM_QUOTE(text) COLDSTREAM_QUOTE_INNER(text)

namespace coldstream::cuda {
namespace {

constexpr const char kLibrary[] =
    "libcublas.so." COLDSTREAM_QUOTE(CUBLAS_VER_MAJOR);

// cublasGemmEx, of whose overloads the exported one is this.
using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t,
                                  cublasOperation_t, int m, int n, int k,
                                  const void* alpha, const void* a,
                                  cudaDataType, int a_stride, const void* b,
                                  cudaDataType, int b_stride, const void* beta,
                                  void* c, cudaDataType, int c_stride,
                                  cublasComputeType_t, cublasGemmAlgo_t);
static_assert(
    std::is_same_v<decltype(static_cast<GemmEx>(&cublasGemmEx)), GemmEx>);

// The functions that are used, with the types of the header.
struct Cublas {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  GemmEx gemm = nullptr;
  decltype(&cublasGetStatusString) text = nullptr;
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// The library stays loaded: its modules live on the card as long as the
// process.
StatusOr<Cublas> OpenCublas() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return absl::UnavailableError(absl::StrFormat(
        "products of many tokens need cuBLAS, which does not load: %s; install "
        "the CUDA runtime libraries, or use --device cpu",
        why != nullptr ? why : kLibrary));
  }
  Cublas cublas;
  if (!Find(library, "cublasCreate_v2", &cublas.create) ||
      !Find(library, "cublasDestroy_v2", &cublas.destroy) ||
      !Find(library, "cublasSetStream_v2", &cublas.set_stream) ||
      !Find(library, "cublasSetWorkspace_v2", &cublas.set_workspace) ||
      !Find(library, "cublasGemmEx", &cublas.gemm) ||
      !Find(library, "cublasGetStatusString", &cublas.text)) {
    return absl::UnavailableError(absl::StrFormat(
        "%s lacks a function of its version: %s", kLibrary, dlerror()));
  }
  return cublas;
}

class CublasGemm final : public Gemm {
 public:
  CublasGemm(const Cublas& cublas, cublasHandle_t handle)
      : cublas_(cublas), handle_(handle) {}
  ~CublasGemm() override { cublas_.destroy(handle_); }

  // cuBLAS counts columns first: a matrix [rows, k] of ours is its k x rows.
  Status Run(const GemmArgs& args) override {
    const bool half = args.type == GemmType::kF16;
    const cudaDataType_t type = half ? CUDA_R_16F : CUDA_R_32F;
    const int k = Int(args.k);
    const float one = 1;
    const float zero = 0;
    const cublasStatus_t status =
        cublas_.gemm(handle_, CUBLAS_OP_T, CUBLAS_OP_N, Int(args.rows),
                     Int(args.tokens), k, &one, args.weights, type, k, args.x,
                     type, k, &zero, args.out, CUDA_R_32F, Int(args.out_stride),
                     half ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_PEDANTIC,
                     CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    cudaGetLastError();  // clears what a launch may have left
    return absl::InternalError(absl::StrFormat(
        "cuBLAS refused a product of %d x %d with %d tokens: %s", args.rows,
        args.k, args.tokens, cublas_.text(status)));
  }

 private:
  static int Int(int64_t size) {
    CHECK(std::in_range<int>(size));
    return static_cast<int>(size);
  }

  const Cublas cublas_;
  const cublasHandle_t handle_;
};

}  // namespace

StatusOr<std::unique_ptr<Gemm>> Gemm::Create(Stream* stream,
                                             std::span<std::byte> workspace) {
  ASSIGN_OR_RETURN(const Cublas cublas, OpenCublas());
  cublasHandle_t handle = nullptr;
  cublasStatus_t status = cublas.create(&handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    cudaGetLastError();
    return absl::UnavailableError(
        absl::StrFormat("cuBLAS does not start: %s", cublas.text(status)));
  }
  auto gemm = std::make_unique<CublasGemm>(cublas, handle);
  status = cublas.set_stream(
      handle, static_cast<cudaStream_t>(stream->native_handle()));
  // After the stream: setting that gives back the library's own workspace.
  if (status == CUBLAS_STATUS_SUCCESS)
    status = cublas.set_workspace(handle, workspace.data(), workspace.size());
  if (status == CUBLAS_STATUS_SUCCESS) return gemm;
  cudaGetLastError();
  return absl::InternalError(absl::StrFormat(
      "cuBLAS refused its stream or workspace: %s", cublas.text(status)));
}

}  // namespace coldstream::cuda
