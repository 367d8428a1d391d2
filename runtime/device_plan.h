// The plan of an engine that computes on a device with memory of its own: what
// lies in which memory, and what the CPU computes beside it.
#ifndef COLDSTREAM_RUNTIME_DEVICE_PLAN_H_
#define COLDSTREAM_RUNTIME_DEVICE_PLAN_H_

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/engine_plan.h"
#include "runtime/model.h"

namespace coldstream {

// `options`: defaults filled in, but for the split and the prefetch depth. With
// rates that are known the two are what is predicted to take the least time,
// decode first. Errors: as Engine::Create for memory and the split.
StatusOr<EnginePlan> PlanDevice(const Model& model,
                                const EngineOptions& options);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_DEVICE_PLAN_H_
