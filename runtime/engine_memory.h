// What an engine takes beside its weights, in each memory it works with.
#ifndef COLDSTREAM_RUNTIME_ENGINE_MEMORY_H_
#define COLDSTREAM_RUNTIME_ENGINE_MEMORY_H_

#include "runtime/engine.h"
#include "runtime/model.h"
#include "runtime/split_counts.h"
#include "scheduler/memory_plan.h"

namespace coldstream {

// Of options with every default filled in, but for the split.
bool HasGpu(const EngineOptions& options);

// Of a device's memory; `split`: what the CPU computes beside it.
FixedMemory CountDeviceMemory(const Model& model, const EngineOptions& options,
                              const SplitCounts& split);

// Of the process. Without a device all passes are computed there.
FixedMemory CountHostMemory(const Model& model, const EngineOptions& options,
                            const SplitCounts& split);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_ENGINE_MEMORY_H_
