#include "scheduler/weight_store.h"

#include "base/check.h"

namespace coldstream {

StatusOr<WeightStore> WeightStore::Create(std::span<const WeightUnit> units,
                                          const MemoryPlan& plan,
                                          Device* device) {
  WeightStore store;
  store.units_ = units;
  store.resident_ = plan.resident;
  store.resident_offset_ = plan.resident_offset;
  store.loaded_.assign(units.size(), false);
  store.slot_bytes_ = plan.slot_bytes;
  store.slot_count_ = plan.slot_count;
  ASSIGN_OR_RETURN(store.arena_,
                   device->Allocate(plan.resident_bytes, "resident weights"));
  ASSIGN_OR_RETURN(store.slots_,
                   device->Allocate(plan.slots_bytes(), "weight slots"));
  return store;
}

StatusOr<WeightStore> WeightStore::Create(std::span<const WeightUnit> units,
                                          const MemoryPlan& vram,
                                          const MemoryPlan& host,
                                          Device* device,
                                          const Placement& placement) {
  ASSIGN_OR_RETURN(WeightStore store, Create(units, vram, device));
  store.host_home_ = host.resident;
  store.host_offset_ = host.resident_offset;
  store.host_loaded_.assign(units.size(), false);
  store.placement_ = placement;
  for (size_t i = 0; i < units.size(); ++i)
    CHECK(!placement.EverOnCpu(static_cast<int>(i)) || host.resident[i]);
  ASSIGN_OR_RETURN(store.host_arena_,
                   PinnedMemory::Allocate(device, host.uploaded_bytes,
                                          "weights in host memory"));
  ASSIGN_OR_RETURN(
      store.cpu_arena_,
      HostMemory::Allocate(host.resident_bytes - host.uploaded_bytes,
                           "weights that the CPU computes"));
  return store;
}

std::byte* WeightStore::HostHome(int unit) const {
  const auto index = static_cast<size_t>(unit);
  if (host_home_.empty() || !host_home_[index]) return nullptr;
  const uint64_t offset = host_offset_[index];
  return offset < host_arena_.size()
             ? host_arena_.data() + offset
             : cpu_arena_.data() + (offset - host_arena_.size());
}

void WeightStore::MarkInHostMemory(int unit) {
  CHECK(HostHome(unit) != nullptr);
  host_loaded_[static_cast<size_t>(unit)] = true;
}

std::byte* WeightStore::Destination(int unit, int slot) const {
  const auto index = static_cast<size_t>(unit);
  if (resident_[index]) return arena_.data() + resident_offset_[index];
  CHECK(slot >= 0 && slot < slot_count_);
  CHECK(units_[index].buffer_bytes <= slot_bytes_);
  return slots_.data() + static_cast<uint64_t>(slot) * slot_bytes_;
}

void WeightStore::MarkLoaded(int unit) {
  CHECK(resident(unit));
  loaded_[static_cast<size_t>(unit)] = true;
}

std::vector<bool> WeightStore::NeedsLoadNow(Phase phase) const {
  std::vector<bool> needs(units_.size());
  for (size_t i = 0; i < needs.size(); ++i)
    needs[i] =
        OnCpu(static_cast<int>(i), phase) ? !host_loaded_[i] : !loaded_[i];
  return needs;
}

std::vector<bool> WeightStore::NeedsLoadAlways(Phase phase) const {
  std::vector<bool> needs(units_.size());
  for (size_t i = 0; i < needs.size(); ++i)
    needs[i] = !resident_[i] && !OnCpu(static_cast<int>(i), phase);
  return needs;
}

}  // namespace coldstream
