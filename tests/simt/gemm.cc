// The products of kernels/cuda/gemm.h as loops, for streams that are queues of
// the shim. Rounds where cuBLAS does: inputs as given, products exact (F16) or
// rounded with the sum (F32), sums in F32; the order of the sum is its own.

#include "kernels/cuda/gemm.h"

#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "tests/simt/kernel_queue.h"

namespace coldstream::cuda {
namespace {

// Sums by position modulo this, so that the compiler may take several at once.
constexpr int64_t kLanes = 8;

// [rows, k] as floats.
std::vector<float> Floats(GemmType type, const void* from, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = type == GemmType::kF16
                    ? F16ToF32(static_cast<const uint16_t*>(from)[i])
                    : static_cast<const float*>(from)[i];
  }
  return values;
}

float Dot(const float* a, const float* b, int64_t k) {
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) sums[j] += a[i + j] * b[i + j];
  for (; i < k; ++i) sums[i % kLanes] += a[i] * b[i];
  float total = 0;
  for (const float sum : sums) total += sum;
  return total;
}

void Multiply(const GemmArgs& args) {
  const std::vector<float> w =
      Floats(args.type, args.weights, args.rows * args.k);
  const std::vector<float> x = Floats(args.type, args.x, args.tokens * args.k);
  for (int64_t t = 0; t < args.tokens; ++t) {
    for (int64_t r = 0; r < args.rows; ++r) {
      args.out[t * args.out_stride + r] =
          Dot(w.data() + r * args.k, x.data() + t * args.k, args.k);
    }
  }
}

class SimtGemm final : public Gemm {
 public:
  explicit SimtGemm(simt::KernelQueue* queue) : queue_(*queue) {}

  Status Run(const GemmArgs& args) override {
    queue_.Enqueue([args] { Multiply(args); });
    return absl::OkStatus();
  }

 private:
  simt::KernelQueue& queue_;
};

}  // namespace

StatusOr<std::unique_ptr<Gemm>> Gemm::Create(Stream* stream,
                                             std::span<std::byte> workspace) {
  CHECK(workspace.size() >= kGemmWorkspaceBytes);
  return std::make_unique<SimtGemm>(
      static_cast<simt::KernelQueue*>(stream->native_handle()));
}

}  // namespace coldstream::cuda
