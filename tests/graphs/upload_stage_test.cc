// The graph with a device that has memory of its own: units in the device's
// memory, in the host's and on disk, on a device that does everything late and
// in any legal order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graphs/stream_graph.h"
#include "scheduler/memory_plan.h"
#include "scheduler/uploader.h"
#include "tests/simt/kernel_queue.h"
#include "tests/support/deferred_device.h"
#include "tests/support/fake_reader.h"
#include "tests/support/mutant_device.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kUnitBytes = 8192;

// Where a unit's weights are. kCpu and the two below are on the host and
// computed there, always or in one kind of pass.
enum class Home { kDevice, kHost, kDisk, kCpu, kCpuInDecode, kCpuInPrefill };

// Units are a page or two long and unlike one another.
std::vector<WeightUnit> MakeUnits(size_t count) {
  std::vector<WeightUnit> units;
  for (size_t i = 0; i < count; ++i) {
    WeightUnit unit;
    unit.name = "unit" + std::to_string(i);
    const uint64_t offset = i * kUnitBytes;
    unit.parts.push_back({{0, offset, kUnitBytes - 100 * (i % 3)}, 0});
    const uint64_t sizes[] = {offset + kUnitBytes};
    const uint32_t alignments[] = {4096};
    LayOutUnit(sizes, alignments, 0, &unit);
    units.push_back(unit);
  }
  return units;
}

uint64_t HashOf(const std::byte* data, uint64_t bytes) {
  uint64_t hash = 14695981039346656037u;
  for (uint64_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<uint64_t>(data[i])) * 1099511628211u;
  return hash;
}

struct Shape {
  std::vector<Home> homes;
  std::string phases = "d";  // of the passes in turn: decode, prefill
  int slots = 2;
  size_t staging = 2;
  uint64_t seed = 1;
  DeviceFaults faults = {};
  FakeReader::Options reader = {};
  Mutation mutation = {};
};

MemoryPlan VramPlan(const Shape& shape) {
  MemoryPlan plan;
  for (const Home home : shape.homes) {
    plan.resident.push_back(home == Home::kDevice);
    plan.resident_offset.push_back(plan.resident_bytes);
    if (plan.resident.back()) plan.resident_bytes += kUnitBytes;
  }
  plan.slot_bytes = kUnitBytes;
  plan.slot_count = shape.slots;
  return plan;
}

MemoryPlan HostPlan(const Shape& shape) {
  MemoryPlan plan;
  plan.resident.resize(shape.homes.size());
  plan.resident_offset.resize(shape.homes.size());
  for (const bool uploaded : {true, false}) {
    for (size_t i = 0; i < shape.homes.size(); ++i) {
      const Home home = shape.homes[i];
      if (home == Home::kDevice || home == Home::kDisk ||
          (home == Home::kCpu) == uploaded)
        continue;
      plan.resident[i] = true;
      plan.resident_offset[i] = plan.resident_bytes;
      plan.resident_bytes += kUnitBytes;
    }
    if (uploaded) plan.uploaded_bytes = plan.resident_bytes;
  }
  return plan;
}

Placement PlacementOf(const Shape& shape) {
  Placement placement;
  for (const Home home : shape.homes) {
    placement.of(Phase::kDecode)
        .push_back(home == Home::kCpu || home == Home::kCpuInDecode);
    placement.of(Phase::kPrefill)
        .push_back(home == Home::kCpu || home == Home::kCpuInPrefill);
  }
  return placement;
}

// Everything the graph works on, and the runner: its kernels hash the units.
class Rig final : public PassRunner {
 public:
  explicit Rig(Shape wanted)
      : shape(std::move(wanted)),
        units(MakeUnits(shape.homes.size())),
        reader(shape.reader),
        parallel(2) {
    device = std::make_unique<MutantDevice>(
        CreateDeferredDevice({.seed = shape.seed, .faults = shape.faults}),
        shape.mutation);
    compute = *device->NewStream();
    ring = std::make_unique<StagingRing>(*StagingRing::Create(
        device.get(), shape.staging * kUnitBytes, kUnitBytes));
    uploader = *Uploader::Create({.device = device.get(),
                                  .compute = compute.get(),
                                  .staging = ring.get(),
                                  .slots = shape.slots,
                                  .trace = nullptr});
    store = *WeightStore::Create(units, VramPlan(shape), HostPlan(shape),
                                 device.get(), PlacementOf(shape));
    graph = std::make_unique<StreamGraph>(
        StreamGraph::Parts{.parallel = &parallel,
                           .reader = &reader,
                           .store = &store,
                           .prefetch_depth = shape.slots,
                           .uploader = uploader.get(),
                           .trace = nullptr});
  }
  ~Rig() override { device->SynchronizeAll(); }

  Status Run(int64_t passes) {
    hashes.assign(static_cast<size_t>(passes) * units.size(), 0);
    next = 0;
    passes_left = passes;
    return graph->Run(this, passes, nullptr);
  }

  Status BeginPass(int64_t pass) override {
    phase = PhaseOf(pass);
    return absl::OkStatus();
  }
  Phase PhaseOf(int64_t pass) const override {
    const size_t turn = static_cast<size_t>(pass) % shape.phases.size();
    return shape.phases[turn] == 'd' ? Phase::kDecode : Phase::kPrefill;
  }
  Status RunUnit(int unit, const std::byte* weights) override {
    const uint64_t bytes =
        units[static_cast<size_t>(unit)].parts[0].extent.length;
    if (store.OnCpu(unit, phase)) {
      hashes[next++] = HashOf(weights, bytes);
      return absl::OkStatus();
    }
    auto* queue = static_cast<simt::KernelQueue*>(compute->native_handle());
    queue->Enqueue([weights, bytes, out = &hashes[next++]] {
      *out = HashOf(weights, bytes);
    });
    return absl::OkStatus();
  }
  Status FinishPass(int64_t) override { return compute->Synchronize(); }
  StatusOr<bool> EndPass(int64_t) override { return --passes_left > 0; }

  // Units of all passes that met other bytes than their own.
  int WrongUnits() const {
    int wrong = 0;
    for (size_t i = 0; i < hashes.size(); ++i) {
      const Extent& extent = units[i % units.size()].parts[0].extent;
      std::vector<std::byte> bytes(extent.length);
      for (uint64_t b = 0; b < extent.length; ++b)
        bytes[b] = FakeReader::ByteAt(0, extent.offset + b);
      wrong += hashes[i] != HashOf(bytes.data(), bytes.size());
    }
    return wrong;
  }

  Shape shape;
  std::vector<WeightUnit> units;
  FakeReader reader;
  Parallel parallel;
  std::unique_ptr<MutantDevice> device;
  std::unique_ptr<Stream> compute;
  std::unique_ptr<StagingRing> ring;
  WeightStore store;
  std::unique_ptr<Uploader> uploader;
  std::unique_ptr<StreamGraph> graph;
  std::vector<uint64_t> hashes;
  Phase phase = Phase::kDecode;
  size_t next = 0;
  int64_t passes_left = 0;
};

// By letter: in VRAM, in RAM, on disk, of the CPU, of the CPU in decode, of the
// CPU in prefill.
std::vector<Home> Homes(const std::string& pattern) {
  const std::string letters = "vrdcep";
  std::vector<Home> homes;
  for (const char c : pattern)
    homes.push_back(static_cast<Home>(letters.find(c)));
  return homes;
}

TEST(UploadStageTest, EveryUnitMeetsItsOwnBytesInEveryPass) {
  uint64_t seed = 0;
  for (const char* pattern : {"d", "r", "v", "ddd", "rrr", "vvv", "vrd",
                              "drvdrvdr", "vddddv", "rrdrrd", "dvrrvddr"}) {
    for (int slots : {1, 2, 3, 7}) {
      for (size_t staging : {1u, 2u, 5u}) {
        Rig rig(
            {.homes = Homes(pattern),
             .slots = slots,
             .staging = staging,
             .seed = ++seed,
             .reader = {.seed = seed, .max_delay_us = 30, .reorder = true}});
        for (int run = 0; run < 2; ++run) {
          ASSERT_THAT(rig.Run(4), IsOk());
          ASSERT_EQ(rig.WrongUnits(), 0)
              << pattern << ", " << slots << " slots, " << staging
              << " staging buffers, seed " << seed << ", run " << run;
        }
      }
    }
  }
}

TEST(UploadStageTest, UnitsOfTheHostAreReadOnceAndUploadedInEveryPass) {
  Rig rig({.homes = Homes("vrdr")});
  ASSERT_THAT(rig.Run(5), IsOk());
  // Two units of the host, one of the device: once; the one on disk: each pass.
  EXPECT_EQ(rig.reader.stats().bytes, (3 + 5) * kUnitBytes);
  EXPECT_EQ(rig.uploader->stats().bytes, (1 + 5 * 3) * kUnitBytes);
  EXPECT_GT(rig.uploader->stats().busy_seconds, 0);
}

// Whatever the order of the phases: what the first pass reads is there when a
// later one needs it, on the side that needs it.
TEST(UploadStageTest, UnitsOfTheCpuMeetTheirOwnBytesInEveryPhase) {
  uint64_t seed = 0;
  for (const char* pattern :
       {"c", "e", "vce", "vepr", "eeee", "pppp", "vcrdcepd", "eerrpp", "dececv",
        "ppppeeee", "eeeepppp"}) {
    for (const char* phases : {"d", "p", "pd", "dp", "ppddd"}) {
      for (int slots : {1, 2, 3, 7}) {
        Rig rig(
            {.homes = Homes(pattern),
             .phases = phases,
             .slots = slots,
             .staging = 2,
             .seed = ++seed,
             .reader = {.seed = seed, .max_delay_us = 300, .reorder = true}});
        for (int run = 0; run < 2; ++run) {
          ASSERT_THAT(rig.Run(5), IsOk());
          ASSERT_EQ(rig.WrongUnits(), 0)
              << pattern << " in " << phases << ", " << slots << " slots, seed "
              << seed << ", run " << run;
        }
      }
    }
  }
}

TEST(UploadStageTest, UnitsOfTheCpuAreReadOnceAndUploadedInTheOtherPhaseOnly) {
  Rig rig({.homes = Homes("vcepd"), .phases = "pddd"});
  ASSERT_THAT(rig.Run(4), IsOk());
  // One prefill pass and three of decode: four units read once, one each time.
  EXPECT_EQ(rig.reader.stats().bytes, (4 + 4) * kUnitBytes);
  // v once, e in prefill, p in decode, d in all.
  EXPECT_EQ(rig.uploader->stats().bytes, (1 + 1 + 3 + 4) * kUnitBytes);
}

TEST(UploadStageTest, AFailedReadEndsTheRunAndTheNextOneWorks) {
  for (int64_t request = 0; request < 9; ++request) {
    for (const char* pattern : {"vrdrdd", "cvedcd", "cdedcd"}) {
      Rig rig({.homes = Homes(pattern),
               .phases = "pd",
               .slots = 2,
               .staging = 1,
               .reader = {.seed = 1, .fail_request = request}});
      EXPECT_THAT(rig.Run(3).ToString(), HasSubstr("DATA_LOSS")) << request;
      ASSERT_THAT(rig.Run(3), IsOk()) << request;
      EXPECT_EQ(rig.WrongUnits(), 0) << request;
    }
  }
}

// No pass that a failed copy went into is taken for good.
TEST(UploadStageTest, AFailedCopyIsTheRunsError) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (int64_t copy = 0; copy < 8; ++copy) {
      Rig rig({.homes = Homes("vrdd"),
               .seed = seed,
               .faults = {.fail_copies_from = copy}});
      EXPECT_EQ(rig.Run(3).code(), absl::StatusCode::kInternal)
          << "copy " << copy << ", seed " << seed;
    }
  }
}

TEST(UploadStageTest, AFailedKernelIsTheRunsError) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rig rig({.homes = Homes("vrdd"),
             .seed = seed,
             .faults = {.fail_kernels_from = 5}});
    EXPECT_EQ(rig.Run(3).code(), absl::StatusCode::kInternal) << seed;
  }
}

// Events in the order the rig makes them: ready and used of each slot, then
// begin and end of copies and waits.
constexpr int kMutantSlots = 2;
constexpr int kCopyStream = 1;
bool IsReady(int event) { return event < 2 * kMutantSlots && event % 2 == 0; }
bool IsUsed(int event) { return event < 2 * kMutantSlots && event % 2 == 1; }
bool IsEnd(int event) { return event >= 2 * kMutantSlots && event % 2 == 1; }

struct NamedMutation {
  const char* name;
  Mutation mutation;
};
const NamedMutation kMutations[] = {
    {"the copy does not wait for the slot's last use",
     {Mutation::Call::kStreamWait, IsUsed, -1}},
    {"the slot's use is not recorded", {Mutation::Call::kRecord, IsUsed, -1}},
    {"the kernels do not wait for the copy",
     {Mutation::Call::kStreamWait, IsReady, -1}},
    {"the copy is not recorded", {Mutation::Call::kRecord, IsReady, -1}},
    {"the staging buffer goes back before its copy: no record",
     {Mutation::Call::kRecord, IsEnd, kCopyStream}},
    {"the staging buffer goes back before its copy: no wait",
     {Mutation::Call::kHostWait, IsEnd, -1}},
};

TEST(UploadStageTest, EachRuleOfTheSlotProtocolIsNeeded) {
  for (const NamedMutation& mutation : kMutations) {
    int caught = 0;
    constexpr int kSeeds = 30;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Rig rig({.homes = Homes("vddrdvdd"),
               .slots = kMutantSlots,
               .staging = 2,
               .seed = seed,
               .mutation = mutation.mutation});
      const Status status = rig.Run(4);
      caught += !status.ok() || rig.WrongUnits() > 0;
    }
    EXPECT_GT(caught, 0) << mutation.name;
    RecordProperty(mutation.name, caught);
    std::printf("%2d of %d seeds: %s\n", caught, kSeeds, mutation.name);
  }
}

}  // namespace
}  // namespace coldstream
