// What an engine would do with a model under given options, before anything is
// allocated or read: the same plan Engine::Create carries out.
#ifndef COLDSTREAM_RUNTIME_ENGINE_PLAN_H_
#define COLDSTREAM_RUNTIME_ENGINE_PLAN_H_

#include <cstddef>
#include <optional>

#include "base/status.h"
#include "kernels/pass_ops.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "runtime/split_choice.h"
#include "scheduler/memory_plan.h"
#include "scheduler/placement.h"

namespace coldstream {

struct EnginePlan {
  EngineOptions options;           // with every default filled in
  MemoryPlan memory;               // of host memory
  std::optional<MemoryPlan> vram;  // of the device's, unless that is the CPU
  Placement placement = {};        // what the CPU computes beside a device
  SplitChoice split = {};          // as counts
};

// Where a unit's weights are when a pass comes to it.
enum class Home { kVram, kRam, kDisk };
const char* HomeName(Home home);  // "vram", "ram", "disk"
Home HomeOf(const EnginePlan& plan, size_t unit);

// Errors: as Engine::Create for options and memory.
StatusOr<EnginePlan> PlanEngine(const Model& model,
                                const EngineOptions& options);

// The one that an engine carries out.
EnginePlan PlanOf(const Engine& engine);

// The most a pass of this engine holds; options with every default filled in.
PassLimits LimitsOfPass(const Model& model, const EngineOptions& options);

// The file whose rows the embedding is looked up in.
const File& EmbeddingFile(const Model& model);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_ENGINE_PLAN_H_
