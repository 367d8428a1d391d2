#include "runtime/engine_memory.h"

#include <algorithm>

#include "graphs/embedding_rows.h"
#include "graphs/kv_cache.h"
#include "graphs/workspace.h"
#include "runtime/engine_plan.h"

namespace coldstream {
namespace {

// Code, libraries, stacks, the arena, the ring and the heap's slack: measured 9
// to 11 MiB with two threads and everything else accounted for
// (tests/tools/run_command_test.cc holds the real peak against the cap).
constexpr uint64_t kProcessBytes = uint64_t{14} << 20;
constexpr uint64_t kThreadBytes = uint64_t{256} << 10;

// What a driver maps into the process; differs from one to the next.
constexpr uint64_t kDriverBytes = uint64_t{256} << 20;

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
  fixed->kv = KvCache::BytesFor(config, options.kv_type, options.kv_tokens,
                                first_layer, config.layer_count());
  fixed->activations +=
      kernels +
      Workspace::DeviceBytes(config, options.batch_tokens, options.logit_rows);
}

// Of what the CPU computes beside a device.
void CountHostSide(const Model& model, const EngineOptions& options,
                   int64_t layers, FixedMemory* fixed) {
  const ModelConfig& config = model.config();
  fixed->kv =
      KvCache::BytesFor(config, options.kv_type, options.kv_tokens, 0, layers);
  fixed->activations +=
      CpuPassOpsBytes(LimitsOfPass(model, options)) +
      Workspace::DeviceBytes(config, options.batch_tokens, 0) +
      Workspace::HostBytes(config, options.batch_tokens, 0, DeviceKind::kCpu);
}

}  // namespace

bool HasGpu(const EngineOptions& options) {
  return options.gpu != nullptr || options.vram_bytes > 0;
}

FixedMemory CountDeviceMemory(const Model& model, const EngineOptions& options,
                              const SplitCounts& split) {
  FixedMemory fixed;
  CountPassMemory(model, options, split.layers, &fixed);
  return fixed;
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

}  // namespace coldstream
