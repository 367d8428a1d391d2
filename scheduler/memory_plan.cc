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

// One way to split the units: all of more than `largest_cold` bytes are pinned.
struct Split {
  uint64_t largest_cold = 0;  // buffer bytes; 0: everything resident
  uint64_t must_keep = 0;     // footprint of units pinned by size or by wish
  uint64_t slots = 0;
  uint64_t least() const { return must_keep + slots; }
};

bool MustKeep(const WeightUnit& unit, uint64_t largest_cold) {
  return unit.pinned || unit.buffer_bytes > largest_cold;
}

Split SplitAt(std::span<const WeightUnit> units, uint64_t largest_cold,
              int depth) {
  Split split{largest_cold, 0,
              SlotFootprint(largest_cold) * static_cast<uint64_t>(depth)};
  for (const WeightUnit& unit : units)
    if (MustKeep(unit, largest_cold))
      split.must_keep += ResidentFootprint(unit);
  return split;
}

// Sizes worth a split of their own: each at most this share of the next. Units
// a little larger than the rest are no reason to pin them all in one place.
constexpr double kSizeStep = 0.8;

std::vector<Split> AllSplits(std::span<const WeightUnit> units, int depth) {
  std::set<uint64_t, std::greater<>> sizes = {0};
  for (const WeightUnit& unit : units)
    if (!unit.pinned) sizes.insert(unit.buffer_bytes);
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

std::vector<bool> ChooseResidents(std::span<const WeightUnit> units,
                                  const Split& split, uint64_t room) {
  std::vector<bool> kept(units.size());
  for (size_t i = 0; i < units.size(); ++i)
    kept[i] = MustKeep(units[i], split.largest_cold);
  return SpreadResidents(units, std::move(kept), room);
}

uint64_t LargestCold(std::span<const WeightUnit> units,
                     const std::vector<bool>& resident) {
  uint64_t largest = 0;
  for (size_t i = 0; i < units.size(); ++i)
    if (!resident[i]) largest = std::max(largest, units[i].buffer_bytes);
  return largest;
}

// ChooseResidents of `split`; where that happens to keep all of the largest
// units, what the smaller slots leave is given out too.
std::vector<bool> FillBudget(std::span<const WeightUnit> units, Split split,
                             uint64_t room, int depth) {
  for (;;) {
    std::vector<bool> resident =
        ChooseResidents(units, split, room - split.least());
    const uint64_t largest = LargestCold(units, resident);
    if (largest == split.largest_cold) return resident;
    split = SplitAt(units, largest, depth);
  }
}

MemoryPlan MakePlan(std::span<const WeightUnit> units, const FixedMemory& fixed,
                    uint64_t budget, int depth, std::vector<bool> resident) {
  MemoryPlan plan;
  plan.budget = budget;
  plan.fixed = fixed;
  plan.resident = std::move(resident);
  plan.resident_offset.resize(units.size());
  for (size_t i = 0; i < units.size(); ++i) {
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
                     std::span<const WeightUnit> units) {
  const char* const name = budget_flag == BudgetFlag::kRam ? "--ram" : "--vram";
  const auto mib = [](uint64_t bytes) {
    return static_cast<double>(bytes) / (1 << 20);
  };
  const WeightUnit* largest = &units[0];
  for (const WeightUnit& unit : units)
    if (unit.buffer_bytes > largest->buffer_bytes) largest = &unit;
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

}  // namespace

uint64_t LeastBudget(std::span<const WeightUnit> units,
                     const FixedMemory& fixed, int prefetch_depth) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const Split& split : AllSplits(units, prefetch_depth))
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
                                int prefetch_depth, BudgetFlag flag) {
  if (prefetch_depth < kMinPrefetchDepth ||
      prefetch_depth > kMaxPrefetchDepth) {
    return absl::InvalidArgumentError(
        absl::StrFormat("prefetch depth %d is outside %d..%d", prefetch_depth,
                        kMinPrefetchDepth, kMaxPrefetchDepth));
  }
  CHECK(!units.empty());
  const uint64_t least = LeastBudget(units, fixed, prefetch_depth);
  if (budget < least) {
    return absl::ResourceExhaustedError(TooSmall(fixed, budget, least,
                                                 LeastBudget(units, fixed, 1),
                                                 prefetch_depth, flag, units));
  }
  const uint64_t room = budget - fixed.total();
  std::vector<bool> best;
  uint64_t best_cold = std::numeric_limits<uint64_t>::max();
  for (const Split& split : AllSplits(units, prefetch_depth)) {
    if (split.least() > room) continue;
    std::vector<bool> resident = FillBudget(units, split, room, prefetch_depth);
    uint64_t cold = 0;
    for (size_t i = 0; i < units.size(); ++i)
      if (!resident[i]) cold += units[i].read_bytes;
    // Ties go to the larger split: fewer units forced, a more even spread.
    if (cold < best_cold) {
      best_cold = cold;
      best = std::move(resident);
    }
  }
  return MakePlan(units, fixed, budget, prefetch_depth, std::move(best));
}

uint64_t StagingBufferBytes(std::span<const WeightUnit> units) {
  uint64_t largest = 0;
  for (const WeightUnit& unit : units)
    largest = std::max(largest, unit.buffer_bytes);
  return SlotFootprint(largest);
}

StatusOr<MemoryPlan> PlanHostMemory(std::span<const WeightUnit> units,
                                    const MemoryPlan& vram,
                                    const FixedMemory& fixed, uint64_t budget) {
  if (budget < fixed.total()) {
    const auto mib = [](uint64_t bytes) {
      return (bytes + (1 << 20) - 1) >> 20;
    };
    return absl::ResourceExhaustedError(absl::StrFormat(
        "memory budget of %d MiB is too small beside a GPU: the least that "
        "works is --ram %dM (process %d MiB, tokenizer %d, activations %d, "
        "staging %d); raise --ram, or lower --staging or -b",
        budget >> 20, mib(fixed.total()), mib(fixed.process),
        mib(fixed.tokenizer), mib(fixed.activations), mib(fixed.staging)));
  }
  MemoryPlan plan;
  plan.budget = budget;
  plan.fixed = fixed;
  const std::vector<bool> in_either =
      SpreadResidents(units, vram.resident, budget - fixed.total());
  plan.resident.resize(units.size());
  plan.resident_offset.resize(units.size());
  for (size_t i = 0; i < units.size(); ++i) {
    plan.first_pass_read_bytes += units[i].read_bytes;
    if (!in_either[i]) plan.pass_read_bytes += units[i].read_bytes;
    if (!in_either[i] || vram.resident[i]) continue;
    plan.resident[i] = true;
    plan.resident_offset[i] = plan.resident_bytes;
    plan.resident_bytes += ResidentFootprint(units[i]);
  }
  return plan;
}

}  // namespace coldstream
