// The memory that weights are in: the resident arena and the ring of slots,
// both the device's; beside a device with memory of its own, also arenas on the
// host: of units that are uploaded from there, and of units that the CPU
// computes there whatever the pass.
//
// All of it is taken at Create; nothing is allocated while passes run.
// Thread-safety: the loaded marks belong to the thread that runs the stages,
// the marks of the host's arena to the one that uploads; everything else is
// constant after Create.
#ifndef COLDSTREAM_SCHEDULER_WEIGHT_STORE_H_
#define COLDSTREAM_SCHEDULER_WEIGHT_STORE_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/device.h"
#include "base/host_memory.h"
#include "base/pinned_memory.h"
#include "base/status.h"
#include "scheduler/memory_plan.h"
#include "scheduler/placement.h"
#include "scheduler/weight_unit.h"

namespace coldstream {

class WeightStore {
 public:
  // `units` and the device must outlive the store. Errors: ResourceExhausted.
  static StatusOr<WeightStore> Create(std::span<const WeightUnit> units,
                                      const MemoryPlan& plan, Device* device);

  // Beside a device with memory of its own: `vram` as above, and the residents
  // of `host` (PlanHostMemory) in host memory, among them every unit that
  // `placement` has on the CPU.
  static StatusOr<WeightStore> Create(std::span<const WeightUnit> units,
                                      const MemoryPlan& vram,
                                      const MemoryPlan& host, Device* device,
                                      const Placement& placement = {});

  std::span<const WeightUnit> units() const { return units_; }
  bool resident(int unit) const { return resident_[static_cast<size_t>(unit)]; }
  // Where `unit` is read to: its own place if resident, else slot `slot`.
  std::byte* Destination(int unit, int slot) const;
  // Where `unit` lies in host memory, on its way to the device or computed
  // there; null if it does not.
  std::byte* HostHome(int unit) const;
  bool OnCpu(int unit, Phase phase) const {
    return placement_.OnCpu(unit, phase);
  }
  // Where a pass of `phase` finds the unit when it computes it.
  const std::byte* WeightsOf(int unit, int slot, Phase phase) const {
    return OnCpu(unit, phase) ? HostHome(unit) : Destination(unit, slot);
  }
  void MarkInHostMemory(int unit);  // read to its HostHome
  // By unit: read to its HostHome already.
  const std::vector<bool>& host_loaded() const { return host_loaded_; }
  // The host's arena of units that are uploaded, and why copies from it are not
  // beside the host, if so; and its arena of units that never are.
  const PinnedMemory& host_arena() const { return host_arena_; }
  const HostMemory& cpu_arena() const { return cpu_arena_; }

  // The slots' memory, for Reader::RegisterBuffers; empty if there are none.
  std::span<std::byte> slot_memory() const { return slots_.bytes(); }
  std::span<std::byte> resident_memory() const { return arena_.bytes(); }

  bool loaded(int unit) const { return loaded_[static_cast<size_t>(unit)]; }
  void MarkLoaded(int unit);  // resident units only

  // By unit: what a pass of `phase` beginning now has to read or upload, and
  // what every later one has to.
  std::vector<bool> NeedsLoadNow(Phase phase) const;
  std::vector<bool> NeedsLoadAlways(Phase phase) const;

 private:
  std::span<const WeightUnit> units_;
  std::vector<bool> resident_;
  std::vector<uint64_t> resident_offset_;
  std::vector<bool> loaded_;
  uint64_t slot_bytes_ = 0;
  int slot_count_ = 0;
  DeviceMemory arena_;
  DeviceMemory slots_;
  std::vector<bool> host_home_;  // by unit; empty on the CPU
  std::vector<bool> host_loaded_;
  std::vector<uint64_t> host_offset_;
  PinnedMemory host_arena_;
  HostMemory cpu_arena_;
  Placement placement_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_WEIGHT_STORE_H_
