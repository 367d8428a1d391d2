#include "scheduler/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace coldstream {
namespace {

using ::testing::HasSubstr;

// Units of the given MiB, laid out one after another in one file.
std::vector<WeightUnit> UnitsOf(const std::vector<uint64_t>& mebibytes) {
  std::vector<WeightUnit> units;
  uint64_t offset = 0;
  for (uint64_t size : mebibytes) {
    WeightUnit unit;
    unit.name = "unit" + std::to_string(units.size());
    unit.parts.push_back({{0, offset, size << 20}, 0});
    offset += size << 20;
    const uint64_t sizes[] = {offset};
    const uint32_t alignments[] = {4096};
    LayOutUnit(sizes, alignments, 0, &unit);
    units.push_back(unit);
  }
  return units;
}

uint64_t Mib(uint64_t n) { return n << 20; }

FixedMemory Fixed() {
  FixedMemory fixed;
  fixed.process = Mib(30);
  fixed.kv = Mib(10);
  return fixed;
}

TEST(MemoryPlanTest, EverythingIsResidentWhereItFits) {
  const auto units = UnitsOf({4, 8, 4, 8});
  const auto plan = PlanMemory(units, Fixed(), Mib(64), 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->slot_count, 0);
  EXPECT_EQ(plan->pass_read_bytes, 0u);
  EXPECT_EQ(plan->first_pass_read_bytes, Mib(24));
  EXPECT_EQ(plan->total(), Mib(64));
}

TEST(MemoryPlanTest, TheLeastBudgetIsAcceptedAndOneByteLessIsRefused) {
  const auto units = UnitsOf({4, 9, 4, 9, 4, 9, 1});
  for (int depth : {1, 2, 3, 5, 64}) {
    const uint64_t least = LeastBudget(units, Fixed(), depth);
    EXPECT_TRUE(PlanMemory(units, Fixed(), least, depth).ok()) << depth;
    const auto refused = PlanMemory(units, Fixed(), least - 1, depth);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(MemoryPlanTest, ARefusalNamesALeastBudgetThatWorks) {
  const auto units = UnitsOf({4, 9, 4, 9, 4, 9});
  const auto refused = PlanMemory(units, Fixed(), Mib(41), 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("the least that works is --ram 58M"));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("--ram 49M --prefetch-depth 1"));
}

TEST(MemoryPlanTest, DepthOutsideItsRangeIsRefused) {
  const auto units = UnitsOf({4, 4, 4});
  for (int depth : {-1, 0, 65}) {
    EXPECT_EQ(PlanMemory(units, Fixed(), Mib(1000), depth).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// A unit far larger than the rest would make every slot as large.
TEST(MemoryPlanTest, AnOutsizedUnitIsPinnedFirst) {
  const auto units = UnitsOf({4, 4, 4, 60, 4, 4, 4, 4});
  const auto plan = PlanMemory(units, Fixed(), Mib(40 + 60 + 8 + 6), 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->resident[3]);
  EXPECT_EQ(plan->slot_bytes, Mib(4));
  EXPECT_EQ(plan->pass_read_bytes, Mib(24));
}

TEST(MemoryPlanTest, PinnedUnitsStayWhateverTheBudget) {
  auto units = UnitsOf({4, 1, 4, 4, 4});
  units[1].pinned = true;
  const auto plan =
      PlanMemory(units, Fixed(), LeastBudget(units, Fixed(), 2), 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->resident[1]);
}

TEST(MemoryPlanTest, ResidentUnitsAreSpreadEvenlyThroughThePass) {
  const auto units = UnitsOf(std::vector<uint64_t>(40, 4));
  const auto plan = PlanMemory(units, Fixed(), Mib(40 + 8 + 80), 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  int resident = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    resident += plan->resident[i];
    // Half of them, so any window of ten holds four to six.
    if (i >= 10) {
      int window = 0;
      for (size_t j = i - 10; j < i; ++j) window += plan->resident[j];
      EXPECT_GE(window, 4);
      EXPECT_LE(window, 6);
    }
  }
  EXPECT_EQ(resident, 20);
}

// Random shapes and budgets: the plan keeps the cap, its own sums agree, and it
// leaves no room in which another unit would have fitted.
TEST(MemoryPlanTest, ThePlanKeepsTheCapAndUsesIt) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> sizes(2 + random() % 30);
    for (uint64_t& size : sizes) size = 1 + random() % 12;
    const auto units = UnitsOf(sizes);
    const int depth = 1 + static_cast<int>(random() % 5);
    const uint64_t least = LeastBudget(units, Fixed(), depth);
    const uint64_t budget = least + random() % Mib(120);
    const auto plan = PlanMemory(units, Fixed(), budget, depth);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->total(), budget);
    uint64_t cold = 0, end = 0;
    for (size_t i = 0; i < units.size(); ++i) {
      if (plan->resident[i]) {
        EXPECT_EQ(plan->resident_offset[i], end);
        end += units[i].buffer_bytes;
        continue;
      }
      cold += units[i].read_bytes;
      EXPECT_LE(units[i].buffer_bytes, plan->slot_bytes);
      EXPECT_GT(units[i].buffer_bytes, budget - plan->total());
    }
    EXPECT_EQ(end, plan->resident_bytes);
    EXPECT_EQ(cold, plan->pass_read_bytes);
  }
}

// Otherwise a whole output head, a little larger by the unit, would be pinned
// at the end of the pass.
TEST(MemoryPlanTest, UnitsALittleLargerThanTheRestAreSpreadLikeThem) {
  std::vector<uint64_t> sizes(40, 15);
  for (size_t i = 30; i < 40; ++i) sizes[i] = 16;
  const auto units = UnitsOf(sizes);
  const auto plan = PlanMemory(units, Fixed(), Mib(40 + 64 + 200), 4);
  ASSERT_TRUE(plan.ok()) << plan.status();
  int at_the_end = 0;
  for (size_t i = 30; i < 40; ++i) at_the_end += plan->resident[i];
  EXPECT_LE(at_the_end, 4);
}

TEST(MemoryPlanTest, TheDefaultDepthCoversTheReadsInFlightWithinAnEighth) {
  const auto units = UnitsOf(std::vector<uint64_t>(40, 4));
  EXPECT_EQ(DefaultPrefetchDepth(units, Fixed(), Mib(40 + 140), Mib(4)), 4);
  EXPECT_EQ(DefaultPrefetchDepth(units, Fixed(), Mib(40 + 140), Mib(32)), 4);
  EXPECT_EQ(DefaultPrefetchDepth(units, Fixed(), Mib(40 + 30), Mib(32)), 2);
  EXPECT_EQ(DefaultPrefetchDepth(units, Fixed(), Mib(40 + 5), Mib(32)), 1);
  EXPECT_EQ(DefaultPrefetchDepth(units, Fixed(), Mib(40) * 1000, Mib(4096)),
            kMaxPrefetchDepth);
}

TEST(MemoryPlanTest, MoreMemoryNeverMeansMoreReading) {
  const auto units = UnitsOf({3, 9, 3, 9, 3, 9, 3, 9, 3, 9, 12, 12});
  uint64_t last = ~uint64_t{0};
  const uint64_t least = LeastBudget(units, Fixed(), 2);
  for (uint64_t budget = least; budget < least + Mib(90); budget += Mib(1)) {
    const auto plan = PlanMemory(units, Fixed(), budget, 2);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->pass_read_bytes, last) << budget;
    last = plan->pass_read_bytes;
  }
  EXPECT_EQ(last, 0u);
}

// Unit by unit: a on any side, s in a slot here, n never here.
std::vector<UnitRule> RulesOf(const std::string& letters) {
  std::vector<UnitRule> rules;
  for (const char c : letters)
    rules.push_back(c == 'a'   ? UnitRule::kAny
                    : c == 's' ? UnitRule::kSlotOnly
                               : UnitRule::kNeither);
  return rules;
}

TEST(MemoryPlanTest, UnitsThatNeverComeCostNothing) {
  const auto units = UnitsOf({4, 90, 4, 90, 4});
  const auto rules = RulesOf("anana");
  EXPECT_EQ(LeastBudget(units, Fixed(), 2, rules), Mib(40 + 8));
  const auto plan =
      PlanMemory(units, Fixed(), Mib(60), 2, BudgetFlag::kVram, rules);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->resident,
            (std::vector<bool>{true, false, true, false, true}));
  EXPECT_EQ(plan->slot_count, 0);
  EXPECT_EQ(plan->pass_read_bytes, 0u);
  EXPECT_EQ(plan->total(), Mib(40 + 12));
}

TEST(MemoryPlanTest, UnitsOfSlotsHaveOneHoweverMuchRoomThereIs) {
  const auto units = UnitsOf({4, 9, 4, 9, 4});
  const auto rules = RulesOf("asasa");
  const auto plan =
      PlanMemory(units, Fixed(), Mib(1000), 3, BudgetFlag::kVram, rules);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->resident,
            (std::vector<bool>{true, false, true, false, true}));
  EXPECT_EQ(plan->slot_count, 3);
  EXPECT_EQ(plan->slot_bytes, Mib(9));
  EXPECT_EQ(plan->pass_read_bytes, Mib(18));
}

// As ThePlanKeepsTheCapAndUsesIt, with rules.
TEST(MemoryPlanTest, APlanByRulesKeepsTheCapAndUsesIt) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> sizes(2 + random() % 30);
    std::string letters;
    for (uint64_t& size : sizes) {
      size = 1 + random() % 12;
      letters += "aaasn"[random() % 5];
    }
    const auto units = UnitsOf(sizes);
    const auto rules = RulesOf(letters);
    const int depth = 1 + static_cast<int>(random() % 5);
    const uint64_t least = LeastBudget(units, Fixed(), depth, rules);
    EXPECT_FALSE(
        PlanMemory(units, Fixed(), least - 1, depth, BudgetFlag::kVram, rules)
            .ok());
    const uint64_t budget = least + random() % Mib(120);
    const auto plan =
        PlanMemory(units, Fixed(), budget, depth, BudgetFlag::kVram, rules);
    ASSERT_TRUE(plan.ok()) << plan.status() << " " << letters;
    EXPECT_LE(plan->total(), budget);
    uint64_t cold = 0;
    for (size_t i = 0; i < units.size(); ++i) {
      EXPECT_TRUE(letters[i] == 'a' || !plan->resident[i]) << letters;
      if (plan->resident[i] || letters[i] == 'n') continue;
      cold += units[i].read_bytes;
      EXPECT_LE(units[i].buffer_bytes, plan->slot_bytes);
      EXPECT_TRUE(letters[i] != 'a' ||
                  units[i].buffer_bytes > budget - plan->total());
    }
    EXPECT_EQ(cold, plan->pass_read_bytes);
  }
}

TEST(MemoryPlanTest, RulesOfADeviceFollowThePlacement) {
  Placement placement;
  placement.of(Phase::kDecode) = {false, true, true, false};
  placement.of(Phase::kPrefill) = {false, true, false, true};
  EXPECT_EQ(DeviceRules(placement, 4), RulesOf("anss"));
  EXPECT_EQ(DeviceRules({}, 4), RulesOf("aaaa"));
}

// Unit 0 pinned; units 1 and 2 the CPU's, 2 in decode alone; 3 in VRAM.
struct SplitPlans {
  SplitPlans() : units(UnitsOf({1, 8, 8, 8, 8, 8, 8})) {
    units[0].pinned = true;
    placement.of(Phase::kDecode) = {false, true,  true, false,
                                    false, false, false};
    placement.of(Phase::kPrefill) = {false, true,  false, false,
                                     false, false, false};
    vram.resident = {true, false, false, true, false, false, false};
  }
  StatusOr<MemoryPlan> Plan(uint64_t mebibytes) const {
    return PlanHostMemory(units, vram, Fixed(), Mib(mebibytes), placement);
  }
  std::vector<WeightUnit> units;
  MemoryPlan vram;
  Placement placement;
};

TEST(MemoryPlanTest, WhatTheCpuComputesIsInHostMemoryFirst) {
  const SplitPlans split;
  const auto least = split.Plan(40 + 17);
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(least->resident,
            (std::vector<bool>{true, true, true, false, false, false, false}));
  EXPECT_EQ(least->pass_read_bytes, Mib(24));
  const auto more = split.Plan(40 + 17 + 16);
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(more->pass_read_bytes, Mib(8));
  EXPECT_FALSE(more->resident[3]);
}

TEST(MemoryPlanTest, UnitsThatAreCopiedComeBeforeThoseThatNeverAre) {
  const auto plan = SplitPlans().Plan(1000);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->uploaded_bytes, Mib(1 + 8 + 24));
  EXPECT_EQ(plan->resident_bytes, Mib(1 + 8 + 24 + 8));
  EXPECT_EQ(plan->resident_offset[1], plan->uploaded_bytes);
  for (const size_t unit : {0u, 2u, 4u, 5u, 6u})
    EXPECT_LT(plan->resident_offset[unit], plan->uploaded_bytes) << unit;
}

TEST(MemoryPlanTest, TooLittleForWhatTheCpuComputesNamesItsParts) {
  const auto refused = SplitPlans().Plan(40 + 16);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  for (const char* part : {"--ram 57M", "KV cache 10", "weights 17",
                           "--cpu-layers", "--cpu-ffn", "-ngl"})
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(part));
}

}  // namespace
}  // namespace coldstream
