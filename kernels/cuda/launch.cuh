// Launch<kernel>(grid, block, shared_bytes, stream, args...): puts a kernel on
// a stream. The only way kernels are started; no <<<>>>.
//
//   return Launch<AddKernel>(Blocks(n, 256), 256, 0, stream, x, n, out);
//
// Arguments are converted to the kernel's parameter types and copied at the
// call. Under the SIMT shim the kernel goes on the simt::KernelQueue behind
// the stream's native handle and runs when the queue does.
//
// Errors: Internal, naming the kernel: the launch was refused. The CUDA error
// is cleared, so that it poisons no later call. What the kernel itself does
// wrong shows at the stream's next Synchronize or Event::Wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/device.h"
#include "base/status.h"
#include "kernels/cuda/cuda_language.cuh"

namespace coldstream::cuda {

// Blocks of `per_block` that cover n items: a dimension of a grid.
inline unsigned Blocks(int64_t n, int64_t per_block) {
  const int64_t blocks = (n + per_block - 1) / per_block;
  CHECK(blocks >= 0 && blocks <= INT32_MAX);
  return static_cast<unsigned>(blocks);
}

// The same for gridDim.y, which ends at 65535: kernels step by gridDim.y.
inline unsigned GridRows(int64_t rows) {
  return static_cast<unsigned>(rows < 65535 ? rows : 65535);
}

// The name of a kernel as the compiler writes it, without its namespaces.
template <auto kernel>
std::string_view KernelName() {
  std::string_view name = __PRETTY_FUNCTION__;
  const size_t begin = name.find("kernel = ");
  if (begin == std::string_view::npos) return name;
  name = name.substr(begin + 9);
  name = name.substr(0, name.find_first_of(";]"));
  const size_t scope = name.substr(0, name.find('<')).rfind("::");
  return scope == std::string_view::npos ? name : name.substr(scope + 2);
}

#if defined(__CUDACC__)

// Shared memory that a kernel gets without asking for more.
inline constexpr size_t kPlainSharedBytes = 48 * 1024;

template <auto kernel, typename... Params>
Status LaunchKernel(void (*)(Params...), dim3 grid, dim3 block,
                    size_t shared_bytes, Stream* stream,
                    std::type_identity_t<Params>... args) {
  const void* function = reinterpret_cast<const void*>(kernel);
  cudaError_t error = cudaSuccess;
  if (shared_bytes > kPlainSharedBytes) {
    error = cudaFuncSetAttribute(function,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_bytes));
  }
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&args))...};
  if (error == cudaSuccess) {
    error =
        cudaLaunchKernel(function, grid, block, pointers, shared_bytes,
                         static_cast<cudaStream_t>(stream->native_handle()));
  }
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // clears it
  return absl::InternalError(absl::StrFormat(
      "CUDA refused to launch %s, grid %u x %u x %u, block %u x %u x %u, %u "
      "bytes shared: %s",
      std::string(KernelName<kernel>()), grid.x, grid.y, grid.z, block.x,
      block.y, block.z, shared_bytes, cudaGetErrorString(error)));
}

#else

template <auto kernel, typename... Params>
Status LaunchKernel(void (*)(Params...), dim3 grid, dim3 block,
                    size_t shared_bytes, Stream* stream,
                    std::type_identity_t<Params>... args) {
  auto* queue = static_cast<simt::KernelQueue*>(stream->native_handle());
  CHECK(queue != nullptr);
  queue->Enqueue([=, copies = std::tuple<Params...>(args...)] {
    const simt::LaunchShape shape = {KernelName<kernel>(), grid, block,
                                     shared_bytes};
    simt::RunGrid(shape, [&] { std::apply(kernel, copies); });
  });
  return absl::OkStatus();
}

#endif

template <auto kernel, typename... Args>
Status Launch(dim3 grid, dim3 block, size_t shared_bytes, Stream* stream,
              Args&&... args) {
  return LaunchKernel<kernel>(kernel, grid, block, shared_bytes, stream,
                              std::forward<Args>(args)...);
}

}  // namespace coldstream::cuda
