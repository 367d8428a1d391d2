#include "runtime/engine_plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/system_limits.h"
#include "graphs/embedding_rows.h"
#include "graphs/kv_cache.h"
#include "graphs/workspace.h"

namespace coldstream {
namespace {

// Code, libraries, stacks, the arena, the ring and the heap's slack: measured 9
// to 11 MiB with two threads and everything else accounted for
// (tests/tools/run_command_test.cc holds the real peak against the cap).
constexpr uint64_t kProcessBytes = uint64_t{14} << 20;
constexpr uint64_t kThreadBytes = uint64_t{256} << 10;

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

Status FillDefaults(const ModelConfig& config, EngineOptions* options) {
  if (options->ram_bytes == 0) options->ram_bytes = DefaultRamBudget().bytes;
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
  // A pass cannot hold more tokens than the context.
  options->batch_tokens = std::min(options->batch_tokens, options->context);
  options->logit_rows = std::min(options->logit_rows, options->batch_tokens);
  return absl::OkStatus();
}

FixedMemory CountFixedMemory(const Model& model, const EngineOptions& options) {
  const ModelConfig& config = model.config();
  FixedMemory fixed;
  fixed.process =
      kProcessBytes + kThreadBytes * static_cast<uint64_t>(options.threads);
  if (options.trace != nullptr) fixed.process += options.trace->memory_bytes();
  fixed.tokenizer = model.memory_bytes();
  fixed.kv = KvCache::BytesFor(config, options.context);
  fixed.activations =
      Workspace::DeviceBytes(config, options.batch_tokens, options.logit_rows) +
      Workspace::HostBytes(config, options.batch_tokens, options.logit_rows,
                           DeviceKind::kCpu) +
      CpuPassOpsBytes(LimitsOfPass(model, options)) +
      EmbeddingRows::BytesFor(model.weights().embedding, EmbeddingFile(model),
                              options.batch_tokens);
  return fixed;
}

}  // namespace

DefaultBudget DefaultRamBudget() {
  const MemoryLimit limit = AvailableMemory();
  const uint64_t head_room = HeadRoom(limit.bytes);
  return {limit.bytes > head_room ? limit.bytes - head_room : 0, limit.source};
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
  limits.blocks = (options.context + kKvBlockTokens - 1) / kKvBlockTokens;
  for (const LayerShape& layer : config.layers) {
    limits.heads = std::max(limits.heads, layer.heads);
    limits.value_dim = std::max(limits.value_dim, layer.value_dim);
  }
  for (const auto& unit : model.weights().matrices)
    for (const MatrixRows& rows : unit)
      limits.output_rows = std::max(limits.output_rows, rows.weight.rows);
  return limits;
}

StatusOr<EnginePlan> PlanEngine(const Model& model,
                                const EngineOptions& options) {
  EnginePlan plan{options, {}};
  EngineOptions& filled = plan.options;
  RETURN_IF_ERROR(FillDefaults(model.config(), &filled));
  const FixedMemory fixed = CountFixedMemory(model, filled);
  const auto& units = model.weights().units;
  if (filled.prefetch_depth == kAutoPrefetchDepth) {
    const uint64_t in_flight =
        filled.reader.chunk_bytes * static_cast<uint64_t>(filled.reader.depth);
    filled.prefetch_depth =
        DefaultPrefetchDepth(units, fixed, filled.ram_bytes, in_flight);
  }
  ASSIGN_OR_RETURN(plan.memory, PlanMemory(units, fixed, filled.ram_bytes,
                                           filled.prefetch_depth));
  return plan;
}

}  // namespace coldstream
