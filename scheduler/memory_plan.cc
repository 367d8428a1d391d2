#include "scheduler/memory_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "absl/strings/str_format.h"
#include "base/align.h"
#include "base/check.h"
#include "base/host_memory.h"

namespace coldstream {
namespace {

// Buffers begin on page boundaries; large ones end on 2 MiB ones, so that every
// slot of a ring lies on huge pages.
uint64_t ResidentFootprint(const WeightUnit& unit) {
  return AlignUp(unit.buffer_bytes, kPageBytes);
}

uint64_t SlotFootprint(uint64_t buffer_bytes) {
  const uint64_t step =
      buffer_bytes >= 8 * kHugePageBytes ? kHugePageBytes : kPageBytes;
  return AlignUp(buffer_bytes, step);
}

// The units of a plan, and what it may do with each.
struct RuledUnits {
  std::span<const WeightUnit> units;
  std::span<const UnitRule> rules;  // empty: all kAny

  size_t size() const { return units.size(); }
  const WeightUnit& operator[](size_t i) const { return units[i]; }
  UnitRule rule(size_t i) const {
    return rules.empty() ? UnitRule::kAny : rules[i];
  }
  bool MustKeep(size_t i, uint64_t largest_cold) const {
    return rule(i) == UnitRule::kAny &&
           (units[i].pinned || units[i].buffer_bytes > largest_cold);
  }
};

// One way to split the units: all of more than `largest_cold` bytes are pinned.
struct Split {
  uint64_t largest_cold = 0;  // buffer bytes; 0: everything resident
  uint64_t must_keep = 0;     // footprint of units pinned by size or by wish
  uint64_t slots = 0;
  uint64_t least() const { return must_keep + slots; }
};

Split SplitAt(const RuledUnits& units, uint64_t largest_cold, int depth) {
  Split split{largest_cold, 0,
              SlotFootprint(largest_cold) * static_cast<uint64_t>(depth)};
  for (size_t i = 0; i < units.size(); ++i)
    if (units.MustKeep(i, largest_cold))
      split.must_keep += ResidentFootprint(units[i]);
  return split;
}

// Sizes worth a split of their own: each at most this share of the next. Units
// a little larger than the rest are no reason to pin them all in one place.
constexpr double kSizeStep = 0.8;

std::vector<Split> AllSplits(const RuledUnits& units, int depth) {
  uint64_t least = 0;  // what a slot must hold
  for (size_t i = 0; i < units.size(); ++i)
    if (units.rule(i) == UnitRule::kSlotOnly)
      least = std::max(least, units[i].buffer_bytes);
  std::set<uint64_t, std::greater<>> sizes = {least};
  for (size_t i = 0; i < units.size(); ++i)
    if (units.rule(i) == UnitRule::kAny && !units[i].pinned)
      sizes.insert(std::max(least, units[i].buffer_bytes));
  std::vector<Split> splits;
  for (const uint64_t size : sizes) {
    if (!splits.empty() &&
        static_cast<double>(size) >
            kSizeStep * static_cast<double>(splits.back().largest_cold))
      continue;
    splits.push_back(SplitAt(units, size, depth));
  }
  return splits;
}

// Chooses residents within `room` bytes: first by error diffusion along the
// pass, so that they are spread evenly by bytes, then whatever still fits,
// largest first.
// `resident`: those that are already.
std::vector<bool> SpreadResidents(std::span<const WeightUnit> units,
                                  std::vector<bool> resident, uint64_t room) {
  uint64_t candidates = 0;
  for (size_t i = 0; i < units.size(); ++i)
    if (!resident[i]) candidates += ResidentFootprint(units[i]);
  if (candidates == 0) return resident;
  const double share = std::min(
      1.0, static_cast<double>(room) / static_cast<double>(candidates));
  double owed = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    if (resident[i]) continue;
    const uint64_t bytes = ResidentFootprint(units[i]);
    owed += share * static_cast<double>(bytes);
    if (bytes <= room && owed >= 0.5 * static_cast<double>(bytes)) {
      resident[i] = true;
      room -= bytes;
      owed -= static_cast<double>(bytes);
    }
  }
  std::vector<size_t> rest;
  for (size_t i = 0; i < units.size(); ++i)
    if (!resident[i]) rest.push_back(i);
  std::stable_sort(rest.begin(), rest.end(), [&](size_t a, size_t b) {
    return units[a].buffer_bytes > units[b].buffer_bytes;
  });
  for (size_t i : rest) {
    const uint64_t bytes = ResidentFootprint(units[i]);
    if (bytes > room) continue;
    resident[i] = true;
    room -= bytes;
  }
  return resident;
}

std::vector<bool> ChooseResidents(const RuledUnits& units, const Split& split,
                                  uint64_t room) {
  std::vector<bool> settled(units.size());
  for (size_t i = 0; i < units.size(); ++i)
    settled[i] = units.rule(i) != UnitRule::kAny ||
                 units.MustKeep(i, split.largest_cold);
  std::vector<bool> resident =
      SpreadResidents(units.units, std::move(settled), room);
  for (size_t i = 0; i < units.size(); ++i)
    if (units.rule(i) != UnitRule::kAny) resident[i] = false;
  return resident;
}

uint64_t LargestCold(const RuledUnits& units,
                     const std::vector<bool>& resident) {
  uint64_t largest = 0;
  for (size_t i = 0; i < units.size(); ++i)
    if (!resident[i] && units.rule(i) != UnitRule::kNeither)
      largest = std::max(largest, units[i].buffer_bytes);
  return largest;
}

// ChooseResidents of `split`; where that happens to keep all of the largest
// units, what the smaller slots leave is given out too.
std::vector<bool> FillBudget(const RuledUnits& units, Split split,
                             uint64_t room, int depth) {
  for (;;) {
    std::vector<bool> resident =
        ChooseResidents(units, split, room - split.least());
    const uint64_t largest = LargestCold(units, resident);
    if (largest == split.largest_cold) return resident;
    split = SplitAt(units, largest, depth);
  }
}

MemoryPlan MakePlan(const RuledUnits& units, const FixedMemory& fixed,
                    uint64_t budget, int depth, std::vector<bool> resident) {
  MemoryPlan plan;
  plan.budget = budget;
  plan.fixed = fixed;
  plan.resident = std::move(resident);
  plan.resident_offset.resize(units.size());
  for (size_t i = 0; i < units.size(); ++i) {
    if (units.rule(i) == UnitRule::kNeither) continue;
    plan.first_pass_read_bytes += units[i].read_bytes;
    if (plan.resident[i]) {
      plan.resident_offset[i] = plan.resident_bytes;
      plan.resident_bytes += ResidentFootprint(units[i]);
    } else {
      plan.pass_read_bytes += units[i].read_bytes;
    }
  }
  const uint64_t largest_cold = LargestCold(units, plan.resident);
  plan.slot_bytes = SlotFootprint(largest_cold);
  plan.slot_count = largest_cold == 0 ? 0 : depth;
  return plan;
}

std::string TooSmall(const FixedMemory& fixed, uint64_t budget, uint64_t least,
                     uint64_t least_at_one, int depth, BudgetFlag budget_flag,
                     const RuledUnits& units) {
  const char* const name = budget_flag == BudgetFlag::kRam ? "--ram" : "--vram";
  const auto mib = [](uint64_t bytes) {
    return static_cast<double>(bytes) / (1 << 20);
  };
  const WeightUnit* largest = &units[0];
  for (size_t i = 0; i < units.size(); ++i)
    if (units.rule(i) != UnitRule::kNeither &&
        units[i].buffer_bytes > largest->buffer_bytes)
      largest = &units[i];
  // Rounded up, so that the number can be given as it is printed.
  const auto flag = [name](uint64_t bytes) {
    return absl::StrFormat("%s %dM", name, (bytes + (1 << 20) - 1) >> 20);
  };
  std::string text = absl::StrFormat(
      "memory budget of %.1f MiB is too small: the least that works is %s "
      "(process %.1f MiB, tokenizer %.1f, KV cache %.1f, activations %.1f, "
      "weights %.1f at prefetch depth %d; largest unit %s %.1f)",
      mib(budget), flag(least), mib(fixed.process), mib(fixed.tokenizer),
      mib(fixed.kv), mib(fixed.activations), mib(least - fixed.total()), depth,
      largest->name, mib(largest->buffer_bytes));
  if (depth > 1 && least_at_one < least)
    text += absl::StrFormat(", or %s --prefetch-depth 1", flag(least_at_one));
  return text + absl::StrFormat("; raise %s, or lower -c or -b", name);
}

// By unit: in host memory whatever else fits there.
std::vector<bool> KeptOnHost(std::span<const WeightUnit> units,
                             const Placement& placement) {
  std::vector<bool> kept(units.size());
  bool any = false;
  for (size_t i = 0; i < units.size(); ++i) {
    kept[i] = placement.EverOnCpu(static_cast<int>(i));
    any = any || kept[i];
  }
  for (size_t i = 0; i < units.size(); ++i)
    kept[i] = kept[i] || (any && units[i].pinned);
  return kept;
}

std::string HostTooSmall(const FixedMemory& fixed, uint64_t kept_bytes,
                         uint64_t budget) {
  const auto mib = [](uint64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; };
  std::string parts = absl::StrFormat(
      "process %d MiB, tokenizer %d, activations %d, staging %d",
      mib(fixed.process), mib(fixed.tokenizer), mib(fixed.activations),
      mib(fixed.staging));
  const char* advice = "lower --staging or -b";
  if (kept_bytes > 0) {
    parts +=
        absl::StrFormat(", of what the CPU computes: KV cache %d, weights %d",
                        mib(fixed.kv), mib(kept_bytes));
    advice = "let the CPU compute less (--cpu-layers, --cpu-ffn, -ngl)";
  }
  return absl::StrFormat(
      "memory budget of %d MiB is too small beside a GPU: the least that works "
      "is --ram %dM (%s); raise --ram, or %s",
      budget >> 20, mib(fixed.total() + kept_bytes), parts, advice);
}

}  // namespace

uint64_t LeastBudget(std::span<const WeightUnit> units,
                     const FixedMemory& fixed, int prefetch_depth,
                     std::span<const UnitRule> rules) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const Split& split : AllSplits({units, rules}, prefetch_depth))
    least = std::min(least, split.least());
  return fixed.total() + least;
}

int DefaultPrefetchDepth(std::span<const WeightUnit> units,
                         const FixedMemory& fixed, uint64_t budget,
                         uint64_t bytes_in_flight) {
  constexpr int kDoubleBuffer = 2;
  if (budget < LeastBudget(units, fixed, kDoubleBuffer)) return 1;
  uint64_t slot = kPageBytes;
  for (const WeightUnit& unit : units)
    if (!unit.pinned) slot = std::max(slot, SlotFootprint(unit.buffer_bytes));
  const uint64_t room = (budget - fixed.total()) / 8;
  const uint64_t ahead = (2 * bytes_in_flight + slot - 1) / slot;
  const uint64_t depth = std::min(kDoubleBuffer + ahead, room / slot);
  return static_cast<int>(
      std::clamp<uint64_t>(depth, kDoubleBuffer, uint64_t{kMaxPrefetchDepth}));
}

StatusOr<MemoryPlan> PlanMemory(std::span<const WeightUnit> units,
                                const FixedMemory& fixed, uint64_t budget,
                                int prefetch_depth, BudgetFlag flag,
                                std::span<const UnitRule> rules) {
  if (prefetch_depth < kMinPrefetchDepth ||
      prefetch_depth > kMaxPrefetchDepth) {
    return absl::InvalidArgumentError(
        absl::StrFormat("prefetch depth %d is outside %d..%d", prefetch_depth,
                        kMinPrefetchDepth, kMaxPrefetchDepth));
  }
  CHECK(!units.empty() && (rules.empty() || rules.size() == units.size()));
  const RuledUnits ruled = {units, rules};
  const uint64_t least = LeastBudget(units, fixed, prefetch_depth, rules);
  if (budget < least) {
    return absl::ResourceExhaustedError(
        TooSmall(fixed, budget, least, LeastBudget(units, fixed, 1, rules),
                 prefetch_depth, flag, ruled));
  }
  const uint64_t room = budget - fixed.total();
  std::vector<bool> best;
  uint64_t best_cold = std::numeric_limits<uint64_t>::max();
  for (const Split& split : AllSplits(ruled, prefetch_depth)) {
    if (split.least() > room) continue;
    std::vector<bool> resident = FillBudget(ruled, split, room, prefetch_depth);
    uint64_t cold = 0;
    for (size_t i = 0; i < units.size(); ++i)
      if (!resident[i] && ruled.rule(i) == UnitRule::kAny)
        cold += units[i].read_bytes;
    // Ties go to the larger split: fewer units forced, a more even spread.
    if (cold < best_cold) {
      best_cold = cold;
      best = std::move(resident);
    }
  }
  return MakePlan(ruled, fixed, budget, prefetch_depth, std::move(best));
}

std::vector<UnitRule> DeviceRules(const Placement& placement, size_t count) {
  std::vector<UnitRule> rules(count);
  for (size_t i = 0; i < count; ++i) {
    const auto unit = static_cast<int>(i);
    rules[i] = placement.AlwaysOnCpu(unit) ? UnitRule::kNeither
               : placement.EverOnCpu(unit) ? UnitRule::kSlotOnly
                                           : UnitRule::kAny;
  }
  return rules;
}

uint64_t StagingBufferBytes(std::span<const WeightUnit> units) {
  uint64_t largest = 0;
  for (const WeightUnit& unit : units)
    largest = std::max(largest, unit.buffer_bytes);
  return SlotFootprint(largest);
}

StatusOr<MemoryPlan> PlanHostMemory(std::span<const WeightUnit> units,
                                    const MemoryPlan& vram,
                                    const FixedMemory& fixed, uint64_t budget,
                                    const Placement& placement) {
  const std::vector<bool> kept = KeptOnHost(units, placement);
  std::vector<bool> settled = vram.resident;
  uint64_t kept_bytes = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    if (!kept[i]) continue;
    settled[i] = true;
    kept_bytes += ResidentFootprint(units[i]);
  }
  if (budget < fixed.total() + kept_bytes) {
    return absl::ResourceExhaustedError(
        HostTooSmall(fixed, kept_bytes, budget));
  }
  MemoryPlan plan;
  plan.budget = budget;
  plan.fixed = fixed;
  const std::vector<bool> in_either =
      SpreadResidents(units, settled, budget - fixed.total() - kept_bytes);
  plan.resident.resize(units.size());
  plan.resident_offset.resize(units.size());
  for (size_t i = 0; i < units.size(); ++i) {
    plan.first_pass_read_bytes += units[i].read_bytes;
    if (!in_either[i]) plan.pass_read_bytes += units[i].read_bytes;
    plan.resident[i] = kept[i] || (in_either[i] && !vram.resident[i]);
  }
  for (const bool uploaded : {true, false}) {
    for (size_t i = 0; i < units.size(); ++i) {
      const bool never = placement.AlwaysOnCpu(static_cast<int>(i));
      if (!plan.resident[i] || never == uploaded) continue;
      plan.resident_offset[i] = plan.resident_bytes;
      plan.resident_bytes += ResidentFootprint(units[i]);
    }
    if (uploaded) plan.uploaded_bytes = plan.resident_bytes;
  }
  return plan;
}

}  // namespace coldstream
