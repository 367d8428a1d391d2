#include "runtime/engine_plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/system_limits.h"
#include "runtime/device_plan.h"
#include "runtime/engine_memory.h"

namespace coldstream {
namespace {

// Left to others when the budget is the machine's own: 1/16, at least 64 MiB.
uint64_t HeadRoom(uint64_t available) {
  return std::max(available / 16, uint64_t{64} << 20);
}

constexpr int64_t kDefaultContext = 4096;

Status CheckRange(const char* what, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is %d, expected %d..%d", what, value, low, high));
}

Status FillBatchDefaults(EngineOptions* options) {
  RETURN_IF_ERROR(CheckRange("the number of sequences at once",
                             options->max_sequences, 1, options->batch_tokens));
  RETURN_IF_ERROR(CheckRange("the length of the queue", options->queue_length,
                             1, int64_t{1} << 31));
  if (options->kv_tokens == 0) {
    // Sequences do not share a block that is not full.
    const int64_t blocks =
        (options->context + kKvBlockTokens - 1) / kKvBlockTokens;
    options->kv_tokens = options->max_sequences == 1
                             ? options->context
                             : options->max_sequences * blocks * kKvBlockTokens;
  }
  RETURN_IF_ERROR(CheckRange("the number of positions in the KV cache",
                             options->kv_tokens, 1, int64_t{1} << 40));
  // A sequence must fit in alone, and a pass hold no more than there is.
  options->context = std::min(options->context, options->kv_tokens);
  options->batch_tokens = std::min(options->batch_tokens, options->kv_tokens);
  options->max_sequences =
      std::min(options->max_sequences, options->batch_tokens);
  options->logit_rows = std::max(options->logit_rows, options->max_sequences);
  return absl::OkStatus();
}

Status FillDefaults(const ModelConfig& config, EngineOptions* options) {
  if (options->ram_bytes == 0) options->ram_bytes = DefaultRamBudget().bytes;
  if (options->gpu != nullptr && options->vram_bytes == 0) {
    ASSIGN_OR_RETURN(const DeviceMemoryInfo memory,
                     options->gpu->device->MemoryInfo());
    options->vram_bytes = DefaultVramBudget(memory);
  }
  if (options->threads == 0) options->threads = DefaultThreads();
  if (options->context == 0)
    options->context = std::min(kDefaultContext, config.train_context);
  RETURN_IF_ERROR(CheckRange("the thread count", options->threads, 1, 1024));
  RETURN_IF_ERROR(
      CheckRange("the context", options->context, 1, int64_t{1} << 31));
  RETURN_IF_ERROR(
      CheckRange("the batch size", options->batch_tokens, 1, int64_t{1} << 20));
  RETURN_IF_ERROR(CheckRange("the number of logit rows", options->logit_rows, 1,
                             options->batch_tokens));
  RETURN_IF_ERROR(FillBatchDefaults(options));
  options->logit_rows = std::min(options->logit_rows, options->batch_tokens);
  return absl::OkStatus();
}

// Errors: Unimplemented (a KV cache that attention does not take).
Status CheckKvType(const ModelConfig& config, const EngineOptions& options) {
  if (options.kv_type == KvType::kF16) return absl::OkStatus();
  for (const LayerShape& layer : config.layers) {
    const int64_t dim = std::max(layer.key_dim, layer.value_dim);
    if (dim <= kMostQ8KvDim) continue;
    return absl::UnimplementedError(absl::StrFormat(
        "heads of %d values, at most %d with a KV cache of %s: use f16", dim,
        kMostQ8KvDim, NameOf(options.kv_type)));
  }
  return absl::OkStatus();
}

// Errors: Unimplemented (the device's kernels do not take this model).
Status CheckKernels(const Model& model, const EngineOptions& options) {
  const PassLimits limits = LimitsOfPass(model, options);
  return options.gpu != nullptr ? options.gpu->kernels.check(limits)
                                : CheckCudaPassLimits(limits);
}

}  // namespace

DefaultBudget DefaultRamBudget() {
  const MemoryLimit limit = AvailableMemory();
  const uint64_t head_room = HeadRoom(limit.bytes);
  return {limit.bytes > head_room ? limit.bytes - head_room : 0, limit.source};
}

const char* HomeName(Home home) {
  switch (home) {
    case Home::kVram:
      return "vram";
    case Home::kRam:
      return "ram";
    case Home::kDisk:
      break;
  }
  return "disk";
}

Home HomeOf(const EnginePlan& plan, size_t unit) {
  if (plan.vram && plan.vram->resident[unit]) return Home::kVram;
  return plan.memory.resident[unit] ? Home::kRam : Home::kDisk;
}

EnginePlan PlanOf(const Engine& engine) {
  EnginePlan plan{engine.options(), engine.plan(), std::nullopt,
                  engine.placement(), engine.split()};
  if (engine.vram_plan() != nullptr) plan.vram = *engine.vram_plan();
  return plan;
}

const File& EmbeddingFile(const Model& model) {
  return *model.checkpoint().files()[static_cast<size_t>(
      model.weights().embedding.extent.file)];
}

PassLimits LimitsOfPass(const Model& model, const EngineOptions& options) {
  const ModelConfig& config = model.config();
  PassLimits limits;
  limits.tokens = options.batch_tokens;
  limits.logit_rows = options.logit_rows;
  limits.input_width =
      std::max({config.hidden, config.max_value_width(), config.max_ffn()});
  limits.rot_dim = config.rope.rot_dim;
  limits.vocab = model.vocab_size();
  // Shared ones are listed for each sequence.
  limits.blocks = options.max_sequences *
                  ((options.context + kKvBlockTokens - 1) / kKvBlockTokens);
  for (const LayerShape& layer : config.layers) {
    limits.heads = std::max(limits.heads, layer.heads);
    limits.key_dim = std::max(limits.key_dim, layer.key_dim);
    limits.value_dim = std::max(limits.value_dim, layer.value_dim);
  }
  for (const auto& unit : model.weights().matrices)
    for (const MatrixRows& rows : unit)
      limits.output_rows = std::max(limits.output_rows, rows.weight.rows);
  return limits;
}

StatusOr<EnginePlan> PlanEngine(const Model& model,
                                const EngineOptions& options) {
  EnginePlan plan{options, {}, {}};
  EngineOptions& filled = plan.options;
  if (HasGpu(filled) && filled.gpu_layers == 0) {
    filled.gpu = nullptr;
    filled.vram_bytes = 0;
  }
  RETURN_IF_ERROR(FillDefaults(model.config(), &filled));
  RETURN_IF_ERROR(CheckKvType(model.config(), filled));
  if (HasGpu(filled)) {
    RETURN_IF_ERROR(CheckKernels(model, filled));
    return PlanDevice(model, filled);
  }
  const FixedMemory host = CountHostMemory(model, filled, {});
  const auto& units = model.weights().units;
  if (filled.prefetch_depth == kAutoPrefetchDepth) {
    const uint64_t in_flight =
        filled.reader.chunk_bytes * static_cast<uint64_t>(filled.reader.depth);
    filled.prefetch_depth =
        DefaultPrefetchDepth(units, host, filled.ram_bytes, in_flight);
  }
  ASSIGN_OR_RETURN(plan.memory, PlanMemory(units, host, filled.ram_bytes,
                                           filled.prefetch_depth));
  return plan;
}

}  // namespace coldstream
