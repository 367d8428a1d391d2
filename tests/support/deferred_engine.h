// Options of engines that compute on a deferred device with the CPU's scalar
// operations, for tests that compare bits with the CPU's.
#ifndef COLDSTREAM_TESTS_SUPPORT_DEFERRED_ENGINE_H_
#define COLDSTREAM_TESTS_SUPPORT_DEFERRED_ENGINE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/byte_units.h"
#include "runtime/engine.h"
#include "tests/support/deferred_device.h"
#include "tests/support/golden_models.h"
#include "tests/support/named_budget.h"
#include "tests/support/queued_pass_ops.h"
#include "tests/support/status_matchers.h"

namespace coldstream {

// More than any golden model needs.
inline constexpr uint64_t kPlenty = kGiB;
// Units small enough for a golden model to have dozens.
inline constexpr uint64_t kSmallUnits = 40000;

inline DeviceKernels QueuedKernels() {
  return {.create = &QueuedPassOps::Create,
          .bytes = &CpuPassOpsBytes,
          .check = &CheckCudaPassLimits};
}

// Enough memory of both kinds.
inline EngineOptions OnDeferredDevice(uint64_t seed,
                                      DeferredDeviceOptions device = {}) {
  device.seed = seed;
  EngineOptions options;
  options.gpu = std::make_shared<ComputeDevice>(
      ComputeDevice{CreateDeferredDevice(device), QueuedKernels()});
  options.ram_bytes = kPlenty;
  options.vram_bytes = kPlenty;
  options.staging_bytes = 2 * 65536;
  options.threads = 2;
  options.isa = Isa::kScalar;  // of what the CPU computes beside it
  return options;
}

// The CPU alone, whose bits all of those must have.
inline EngineOptions OnScalarCpu() {
  EngineOptions options;
  options.ram_bytes = kPlenty;
  options.threads = 2;
  options.isa = Isa::kScalar;
  return options;
}

inline StatusOr<std::vector<float>> EvaluateSmallUnits(
    const Golden& golden, const EngineOptions& options, int64_t chunk) {
  return EvaluateGolden(golden, options, chunk, kSmallUnits);
}

// The least budget that the error for one byte names, in bytes.
inline uint64_t LeastBudgetOf(const Golden& golden, EngineOptions options,
                              const std::string& flag,
                              uint64_t EngineOptions::*budget) {
  options.*budget = 1;
  return NamedBudget(EvaluateSmallUnits(golden, options, 1).status(), flag);
}

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_DEFERRED_ENGINE_H_
