// Which units stay in memory, and what every byte of the budget is for.
//
// Residency is a static pin. A pass over the weights is a cyclic scan, on which
// any least-recently-used cache hits 0 % as soon as the cycle does not fit;
// pins hit exactly the resident fraction. Resident and cold units are spread
// evenly through the pass, so that reads hide behind resident work. Units
// larger than the rest are pinned first where that makes every slot smaller.
#ifndef COLDSTREAM_SCHEDULER_MEMORY_PLAN_H_
#define COLDSTREAM_SCHEDULER_MEMORY_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "scheduler/placement.h"
#include "scheduler/weight_unit.h"

namespace coldstream {

inline constexpr int kMinPrefetchDepth = 1;
inline constexpr int kMaxPrefetchDepth = 64;
inline constexpr int kAutoPrefetchDepth = 0;  // see DefaultPrefetchDepth

// Bytes that are spent whatever the weights do.
struct FixedMemory {
  uint64_t process = 0;      // code, libraries, stacks, allocator
  uint64_t tokenizer = 0;    // and the rest of the metadata
  uint64_t kv = 0;           // the KV cache at full context
  uint64_t activations = 0;  // workspace, logits, embedding rows
  uint64_t staging = 0;      // host buffers on the way to a device
  uint64_t total() const {
    return process + tokenizer + kv + activations + staging;
  }
};

struct MemoryPlan {
  uint64_t budget = 0;
  FixedMemory fixed;
  std::vector<bool> resident;             // by unit
  std::vector<uint64_t> resident_offset;  // in the resident arena, by unit
  uint64_t resident_bytes = 0;            // size of the resident arena
  // Beside a device: of that, from its beginning, units that are copied there.
  uint64_t uploaded_bytes = 0;
  int slot_count = 0;                  // 0 where nothing is cold
  uint64_t slot_bytes = 0;             // of one slot
  uint64_t pass_read_bytes = 0;        // from disk, in a steady pass
  uint64_t first_pass_read_bytes = 0;  // with the loading of residents

  uint64_t slots_bytes() const {
    return slot_bytes * static_cast<uint64_t>(slot_count);
  }
  uint64_t total() const {
    return fixed.total() + resident_bytes + slots_bytes();
  }
};

// What a plan may do with a unit.
enum class UnitRule {
  kAny,       // keep it, or have it in a slot when its turn comes
  kSlotOnly,  // have it in a slot: its place is elsewhere
  kNeither,   // it never comes here
};

// Which memory a budget is of, for what errors advise.
enum class BudgetFlag { kRam, kVram };

// Plans for `budget` bytes of process (or device) memory and `prefetch_depth`
// slots. `rules`: by unit; empty: all kAny. Of units that are kNeither nothing
// is counted. Errors: ResourceExhausted with the smallest budget that would do,
// its largest parts and what to change; InvalidArgument for a depth out of
// range.
StatusOr<MemoryPlan> PlanMemory(std::span<const WeightUnit> units,
                                const FixedMemory& fixed, uint64_t budget,
                                int prefetch_depth,
                                BudgetFlag flag = BudgetFlag::kRam,
                                std::span<const UnitRule> rules = {});

// What PlanMemory may do in a device's memory with units of which the CPU
// computes those that `placement` says. Of `count` units.
std::vector<UnitRule> DeviceRules(const Placement& placement, size_t count);

// Where units live that a device with memory of its own computes: in its memory
// as `vram` says (a MemoryPlan of PlanMemory, with the slots), and of the rest
// in host memory as the returned plan's `resident` says: those that the CPU
// computes, then, evenly spread, those that fit; what is in neither is read
// from disk, through the staging buffers (in `fixed`), in every pass. Pinned
// units are in both where the CPU computes anything. The plan has no slots;
// pass_read_bytes is what comes from disk. Errors: ResourceExhausted (what must
// be in host memory is over the budget: with the least that works, and what to
// change).
StatusOr<MemoryPlan> PlanHostMemory(std::span<const WeightUnit> units,
                                    const MemoryPlan& vram,
                                    const FixedMemory& fixed, uint64_t budget,
                                    const Placement& placement = {});

// The bytes of a staging buffer that any of the units fits into.
uint64_t StagingBufferBytes(std::span<const WeightUnit> units);

// The smallest budget PlanMemory accepts.
uint64_t LeastBudget(std::span<const WeightUnit> units,
                     const FixedMemory& fixed, int prefetch_depth,
                     std::span<const UnitRule> rules = {});

// A depth that keeps the disk busy: one unit being computed, one behind it, and
// enough more for twice the reader's `bytes_in_flight`, as far as the slots
// take no more than an eighth of what the budget leaves for weights. At least 2
// where that budget works, else 1.
int DefaultPrefetchDepth(std::span<const WeightUnit> units,
                         const FixedMemory& fixed, uint64_t budget,
                         uint64_t bytes_in_flight);

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_MEMORY_PLAN_H_
