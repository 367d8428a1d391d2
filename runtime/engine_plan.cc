#include "runtime/engine_plan.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/system_limits.h"
#include "graphs/embedding_rows.h"
#include "graphs/kv_cache.h"
#include "graphs/workspace.h"
#include "runtime/split_counts.h"
#include "scheduler/split_model.h"

namespace coldstream {
namespace {

// Code, libraries, stacks, the arena, the ring and the heap's slack: measured 9
// to 11 MiB with two threads and everything else accounted for
// (tests/tools/run_command_test.cc holds the real peak against the cap).
constexpr uint64_t kProcessBytes = uint64_t{14} << 20;
constexpr uint64_t kThreadBytes = uint64_t{256} << 10;

// What a driver maps into the process; differs from one to the next.
constexpr uint64_t kDriverBytes = uint64_t{256} << 20;

// Left to others when the budget is the machine's own: 1/16, at least 64 MiB.
uint64_t HeadRoom(uint64_t available) {
  return std::max(available / 16, uint64_t{64} << 20);
}

constexpr int64_t kDefaultContext = 4096;

// One slot being computed from, one being copied to.
constexpr int kDeviceSlots = 2;

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

bool HasGpu(const EngineOptions& options) {
  return options.gpu != nullptr || options.vram_bytes > 0;
}

// Errors: Unimplemented (the device's kernels do not take this model).
Status CheckKernels(const Model& model, const EngineOptions& options) {
  const PassLimits limits = LimitsOfPass(model, options);
  return options.gpu != nullptr ? options.gpu->kernels.check(limits)
                                : CheckCudaPassLimits(limits);
}

// Of the memory the passes are computed in, for layers from `first_layer` on.
void CountPassMemory(const Model& model, const EngineOptions& options,
                     int64_t first_layer, FixedMemory* fixed) {
  const ModelConfig& config = model.config();
  const PassLimits limits = LimitsOfPass(model, options);
  uint64_t kernels = CpuPassOpsBytes(limits);
  if (HasGpu(options)) {
    kernels = options.gpu != nullptr ? options.gpu->kernels.bytes(limits)
                                     : CudaPassOpsBytes(limits);
  }
  fixed->kv = KvCache::BytesFor(config, options.kv_tokens, first_layer,
                                config.layer_count());
  fixed->activations +=
      kernels +
      Workspace::DeviceBytes(config, options.batch_tokens, options.logit_rows);
}

// Of what the CPU computes beside a device.
void CountHostSide(const Model& model, const EngineOptions& options,
                   int64_t layers, FixedMemory* fixed) {
  const ModelConfig& config = model.config();
  fixed->kv = KvCache::BytesFor(config, options.kv_tokens, 0, layers);
  fixed->activations +=
      CpuPassOpsBytes(LimitsOfPass(model, options)) +
      Workspace::DeviceBytes(config, options.batch_tokens, 0) +
      Workspace::HostBytes(config, options.batch_tokens, 0, DeviceKind::kCpu);
}

FixedMemory CountHostMemory(const Model& model, const EngineOptions& options,
                            const SplitCounts& split) {
  const bool gpu = HasGpu(options);
  FixedMemory fixed;
  fixed.process =
      kProcessBytes + kThreadBytes * static_cast<uint64_t>(options.threads);
  if (gpu) fixed.process += kDriverBytes;
  if (options.trace != nullptr) fixed.process += options.trace->memory_bytes();
  fixed.tokenizer = model.memory_bytes();
  fixed.activations =
      Workspace::HostBytes(model.config(), options.batch_tokens,
                           options.logit_rows,
                           gpu ? DeviceKind::kCuda : DeviceKind::kCpu) +
      EmbeddingRows::BytesFor(model.weights().embedding, EmbeddingFile(model),
                              options.batch_tokens);
  if (gpu) {
    const uint64_t buffer = StagingBufferBytes(model.weights().units);
    fixed.staging = std::max(buffer, options.staging_bytes / buffer * buffer);
    if (split.any()) CountHostSide(model, options, split.layers, &fixed);
  } else {
    CountPassMemory(model, options, 0, &fixed);
  }
  return fixed;
}

// The plan beside a device, if the CPU computes what `split` says.
StatusOr<EnginePlan> PlanSplit(const Model& model, const EngineOptions& options,
                               const SplitCounts& split) {
  const int64_t layers = model.config().layer_count();
  const auto& units = model.weights().units;
  EnginePlan plan{options, {}, {}};
  SetSplit(split, layers, &plan.options);
  plan.placement = PlaceHalves(model.weights(), layers, split);
  FixedMemory device;
  CountPassMemory(model, options, split.layers, &device);
  ASSIGN_OR_RETURN(
      plan.vram,
      PlanMemory(units, device, options.vram_bytes, options.prefetch_depth,
                 BudgetFlag::kVram, DeviceRules(plan.placement, units.size())));
  ASSIGN_OR_RETURN(
      plan.memory,
      PlanHostMemory(units, *plan.vram, CountHostMemory(model, options, split),
                     options.ram_bytes, plan.placement));
  return plan;
}

// Of a pass of `tokens` tokens; infinity where there is no such plan, or it is
// not known what it takes.
double PredictSplitSeconds(const Model& model, const EngineOptions& options,
                           const SplitCounts& split, int64_t tokens) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const StatusOr<EnginePlan> plan = PlanSplit(model, options, split);
  if (!plan.ok()) return kNever;
  const SplitRates& rates = options.split_rates;
  if (plan->memory.pass_read_bytes > 0 && rates.disk <= 0) return kNever;
  const auto& units = model.weights().units;
  const uint64_t staged =
      plan->memory.fixed.staging / StagingBufferBytes(units);
  return PredictSplitPass({.units = units,
                           .vram = *plan->vram,
                           .host = plan->memory,
                           .placement = plan->placement,
                           .phase = PhaseOf(tokens),
                           .tokens = tokens,
                           .hidden = model.config().hidden,
                           .staging_buffers = static_cast<int>(staged),
                           .rates = rates})
      .seconds;
}

// What the options ask for, and the best of what they leave open.
StatusOr<SplitCounts> ChooseSplit(const Model& model,
                                  const EngineOptions& options) {
  const int64_t layers = model.config().layer_count();
  ASSIGN_OR_RETURN(SplitCounts split, AskedSplit(options, layers));
  if (!options.split_rates.known()) return split;
  const auto best = [&](int64_t most, int64_t SplitCounts::*count,
                        int64_t tokens) {
    return BestCount(most, [&](int64_t tried) {
      SplitCounts with = split;
      with.*count = tried;
      return PredictSplitSeconds(model, options, with, tokens);
    });
  };
  if (!options.cpu_ffn)
    split.ffn = best(layers - split.layers, &SplitCounts::ffn, 1);
  if (options.cpu_ffn_prefill) return split;
  // A pass of many tokens, if there are any: of what is on the CPU already.
  split.ffn_prefill = split.ffn;
  if (PhaseOf(options.batch_tokens) == Phase::kPrefill)
    split.ffn_prefill =
        best(split.ffn, &SplitCounts::ffn_prefill, options.batch_tokens);
  return split;
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
  if (HasGpu(filled)) {
    RETURN_IF_ERROR(CheckKernels(model, filled));
    if (filled.prefetch_depth == kAutoPrefetchDepth)
      filled.prefetch_depth = kDeviceSlots;
    ASSIGN_OR_RETURN(const SplitCounts split, ChooseSplit(model, filled));
    return PlanSplit(model, filled, split);
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
