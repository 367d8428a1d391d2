#include "runtime/device_memory_rate.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/pass_ops.h"

namespace coldstream {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMostBytes = uint64_t{256} << 20;  // of a vector
constexpr uint64_t kLeastBytes = uint64_t{1} << 20;
constexpr int kRounds = 5;
constexpr int kAddsPerRound = 8;
constexpr uint64_t kBytesPerElement = 3 * sizeof(float);

// Seconds of one round; what is queued is done when it returns.
StatusOr<double> AddOnce(PassOps* ops, int64_t n, const float* x, float* out) {
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kAddsPerRound; ++i) RETURN_IF_ERROR(ops->Add(x, n, out));
  RETURN_IF_ERROR(ops->Finish());
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

StatusOr<double> BestRate(PassOps* ops, int64_t n, const float* x, float* out) {
  const std::vector<int64_t> positions = {0};
  const std::vector<int32_t> sequence = {0}, block_begin = {0, 1}, blocks = {0};
  double best = 0;
  for (int round = 0; round <= kRounds; ++round) {  // the first one warms up
    RETURN_IF_ERROR(ops->BeginPass({.positions = positions,
                                    .sequence = sequence,
                                    .block_begin = block_begin,
                                    .blocks = blocks,
                                    .rope = {},
                                    .logit_rows = {}}));
    ASSIGN_OR_RETURN(const double seconds, AddOnce(ops, n, x, out));
    const auto bytes = static_cast<double>(static_cast<uint64_t>(n) *
                                           kBytesPerElement * kAddsPerRound);
    if (round > 0 && seconds > 0) best = std::max(best, bytes / seconds);
  }
  return best;
}

}  // namespace

StatusOr<double> MeasureDeviceMemoryRate(const ComputeDevice& gpu) {
  Device* const device = gpu.device.get();
  ASSIGN_OR_RETURN(const DeviceMemoryInfo memory, device->MemoryInfo());
  const uint64_t bytes = std::clamp(memory.free / 8 / kLeastBytes * kLeastBytes,
                                    kLeastBytes, kMostBytes);
  ASSIGN_OR_RETURN(const DeviceMemory vectors,
                   device->Allocate(2 * bytes, "memory rate"));
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device->NewStream());
  PassLimits limits;
  limits.tokens = 1;
  limits.logit_rows = 1;
  limits.input_width = 256;
  limits.output_rows = 64;
  limits.rot_dim = 2;
  limits.blocks = 1;
  limits.heads = 1;
  limits.value_dim = 64;
  ASSIGN_OR_RETURN(const std::unique_ptr<PassOps> ops,
                   gpu.kernels.create(device, stream.get(), limits));
  const auto n = static_cast<int64_t>(bytes / sizeof(float));
  auto* const x = reinterpret_cast<float*>(vectors.data());
  StatusOr<double> rate = BestRate(ops.get(), n, x, x + n);
  SettleStream(stream.get());  // before its memory goes
  return rate;
}

}  // namespace coldstream
