#include "runtime/device_rates.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "kernels/ops.h"
#include "kernels/pass_ops.h"
#include "runtime/product_bench.h"

namespace coldstream {
namespace {

constexpr int64_t kCols = 4096;
constexpr uint64_t kPieceBytes = uint64_t{16} << 20;
constexpr uint64_t kMostWeights = uint64_t{256} << 20;
constexpr int64_t kTokens = ComputeRates::kMostTokens;
constexpr int64_t kPositions = ComputeRates::kPositions;
constexpr int64_t kBlocks = kPositions / kKvBlockTokens;

int64_t RowsOf(DType type) {
  return static_cast<int64_t>(kPieceBytes / RowBytes(type, kCols)) / 64 * 64;
}

// The last `tokens` of kPositions positions of one sequence.
struct OneSequence {
  explicit OneSequence(int64_t tokens)
      : sequence(static_cast<size_t>(tokens), 0) {
    for (int64_t t = 0; t < tokens; ++t)
      positions.push_back(kPositions - tokens + t);
    for (int32_t block = 0; block < kBlocks; ++block) blocks.push_back(block);
  }
  PassTokens tokens() const {
    return {.positions = positions,
            .sequence = sequence,
            .block_begin = block_begin,
            .blocks = blocks,
            .rope = {},
            .logit_rows = {}};
  }
  double looks() const {
    double sum = 0;
    for (const int64_t position : positions)
      sum += static_cast<double>(position + 1);
    return sum;
  }

  std::vector<int64_t> positions;
  std::vector<int32_t> sequence;
  std::vector<int32_t> block_begin = {0, kBlocks};
  std::vector<int32_t> blocks;
};

class DeviceBench {
 public:
  static StatusOr<std::unique_ptr<DeviceBench>> Create(
      const Model& model, const ComputeDevice& gpu) {
    std::unique_ptr<DeviceBench> bench(new DeviceBench(gpu.device.get()));
    Device* const device = bench->device_;
    ASSIGN_OR_RETURN(const DeviceMemoryInfo memory, device->MemoryInfo());
    bench->weight_bytes_ = std::clamp(
        memory.free / 4 / kPieceBytes * kPieceBytes, kPieceBytes, kMostWeights);
    ASSIGN_OR_RETURN(bench->stream_, device->NewStream());
    ASSIGN_OR_RETURN(bench->ops_,
                     gpu.kernels.create(device, bench->stream_.get(),
                                        Limits(model.config())));
    return bench;
  }
  ~DeviceBench() {
    if (stream_ != nullptr) SettleStream(stream_.get());
  }

  StatusOr<double> WeightByte(DType type, int64_t tokens) {
    const int64_t rows = RowsOf(type);
    const uint64_t piece = RowBytes(type, kCols) * static_cast<uint64_t>(rows);
    // Arithmetic sets the pace of many tokens: a few pieces are enough.
    const uint64_t pieces = tokens == 1 ? weight_bytes_ / kPieceBytes : 2;
    RETURN_IF_ERROR(TakeProductMemory());
    float* const in = Floats(floats_);
    const OneSequence sequence(tokens);
    const auto body = [&]() -> Status {
      RETURN_IF_ERROR(ops_->BeginPass(sequence.tokens()));
      RETURN_IF_ERROR(ops_->SetInput(in, tokens, kCols));
      for (uint64_t i = 0; i < pieces; ++i) {
        const std::byte* const at =
            weights_.data() + i * kPieceBytes % weight_bytes_;
        RETURN_IF_ERROR(
            ops_->Matmul({type, at, rows, kCols}, in + kTokens * kCols, rows));
      }
      return ops_->Finish();
    };
    ASSIGN_OR_RETURN(const double seconds, Median(body));
    return seconds / static_cast<double>(pieces * piece);
  }

  StatusOr<double> AttentionPosition(const LayerShape& shape, int64_t tokens) {
    const auto half = [](int64_t n) {
      return static_cast<uint64_t>(n) * sizeof(uint16_t);
    };
    KvLayer layer;
    layer.values_offset = half(shape.kv_heads * kKvBlockTokens * shape.key_dim);
    layer.block_bytes = layer.values_offset +
                        half(shape.kv_heads * kKvBlockTokens * shape.value_dim);
    layer.heads = shape.heads;
    layer.kv_heads = shape.kv_heads;
    layer.key_dim = shape.key_dim;
    layer.value_dim = shape.value_dim;
    const int64_t q = tokens * shape.heads * shape.key_dim;
    const int64_t out = tokens * shape.heads * shape.value_dim;
    ASSIGN_OR_RETURN(
        const DeviceMemory cache,
        device_->Allocate(layer.block_bytes * kBlocks, "device rates"));
    ASSIGN_OR_RETURN(
        const DeviceMemory floats,
        device_->Allocate(static_cast<size_t>(q + out) * sizeof(float),
                          "device rates"));
    layer.base = cache.data();
    const OneSequence sequence(tokens);
    const StatusOr<double> seconds = Median([&]() -> Status {
      RETURN_IF_ERROR(ops_->BeginPass(sequence.tokens()));
      for (int i = 0; i < kAttentions; ++i) {
        RETURN_IF_ERROR(
            ops_->Attend(Floats(floats), layer, Floats(floats) + q));
      }
      return ops_->Finish();
    });
    SettleStream(stream_.get());  // before its memory goes
    RETURN_IF_ERROR(seconds.status());
    return *seconds / (kAttentions * sequence.looks());
  }

 private:
  static constexpr int kAttentions = 8;  // queued at once

  explicit DeviceBench(Device* device) : device_(device) {}

  static float* Floats(const DeviceMemory& memory) {
    return reinterpret_cast<float*>(memory.data());
  }

  static PassLimits Limits(const ModelConfig& config) {
    PassLimits limits;
    limits.tokens = kTokens;
    limits.logit_rows = 1;
    limits.input_width = kCols;
    limits.output_rows = RowsOf(DType::kQ2_K);  // the densest type
    limits.rot_dim = config.rope.rot_dim;
    limits.blocks = kBlocks;
    for (const LayerShape& layer : config.layers) {
      limits.heads = std::max(limits.heads, layer.heads);
      limits.value_dim = std::max(limits.value_dim, layer.value_dim);
    }
    return limits;
  }

  Status TakeProductMemory() {
    if (weights_.size() > 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(weights_,
                     device_->Allocate(weight_bytes_, "device rates"));
    const int64_t floats = kTokens * (kCols + RowsOf(DType::kQ2_K));
    ASSIGN_OR_RETURN(
        floats_, device_->Allocate(static_cast<size_t>(floats) * sizeof(float),
                                   "device rates"));
    return absl::OkStatus();
  }

  // Median seconds of `body`, or its first error.
  template <typename Body>
  static StatusOr<double> Median(const Body& body) {
    Status failed;
    const double seconds = MedianSeconds([&] {
      if (failed.ok()) failed = body();
    });
    RETURN_IF_ERROR(failed);
    return seconds;
  }

  Device* const device_;
  uint64_t weight_bytes_ = 0;
  DeviceMemory weights_;
  DeviceMemory floats_;  // [kTokens, kCols] in, then [kTokens, rows] out
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<PassOps> ops_;
};

}  // namespace

StatusOr<ComputeRates> MeasureDeviceRates(const Model& model,
                                          const ComputeDevice& gpu,
                                          const ComputeRates::Seconds& known) {
  std::unique_ptr<DeviceBench> bench;
  const auto take_bench = [&]() -> Status {
    if (bench != nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(bench, DeviceBench::Create(model, gpu));
    return absl::OkStatus();
  };
  return ComputeRates::MeasureWith(
      {.weight_byte = [&](DType type, int64_t tokens) -> StatusOr<double> {
         RETURN_IF_ERROR(take_bench());
         return bench->WeightByte(type, tokens);
       },
       .attention_position = [&](const LayerShape& shape,
                                 int64_t tokens) -> StatusOr<double> {
         RETURN_IF_ERROR(take_bench());
         return bench->AttentionPosition(shape, tokens);
       }},
      model, known);
}

}  // namespace coldstream
