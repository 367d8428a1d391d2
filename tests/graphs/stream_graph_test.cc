#include "graphs/stream_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "scheduler/memory_plan.h"
#include "tests/support/fake_reader.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;

std::vector<WeightUnit> MakeUnits(int count, uint64_t bytes) {
  std::vector<WeightUnit> units;
  for (int i = 0; i < count; ++i) {
    WeightUnit unit;
    unit.name = "unit" + std::to_string(i);
    const uint64_t offset = static_cast<uint64_t>(i) * bytes;
    unit.parts.push_back({{0, offset, bytes}, 0});
    const uint64_t sizes[] = {offset + bytes};
    const uint32_t alignments[] = {4096};
    LayOutUnit(sizes, alignments, 0, &unit);
    units.push_back(unit);
  }
  return units;
}

// Everything a StreamGraph works on, with `resident` of the units kept.
struct Rig {
  Rig(int unit_count, int resident_count, int depth, int threads,
      const FakeReader::Options& reader_options)
      : units(MakeUnits(unit_count, 8192)),
        reader(reader_options),
        parallel(threads) {
    MemoryPlan plan;
    plan.resident.assign(units.size(), false);
    plan.resident_offset.assign(units.size(), 0);
    for (int i = 0; i < resident_count; ++i) {
      // Spread: every k-th unit.
      const size_t unit = static_cast<size_t>(i * unit_count / resident_count);
      plan.resident[unit] = true;
      plan.resident_offset[unit] = plan.resident_bytes;
      plan.resident_bytes += 8192;
    }
    if (resident_count < unit_count) {
      plan.slot_bytes = 8192;
      plan.slot_count = depth;
    }
    store = *WeightStore::Create(units, plan, device.get());
    graph = std::make_unique<StreamGraph>(
        StreamGraph::Parts{.parallel = &parallel,
                           .reader = &reader,
                           .store = &store,
                           .prefetch_depth = depth,
                           .uploader = nullptr,
                           .trace = nullptr});
  }
  std::vector<WeightUnit> units;
  FakeReader reader;
  Parallel parallel;
  std::unique_ptr<Device> device = CreateCpuDevice();
  WeightStore store;
  std::unique_ptr<StreamGraph> graph;
};

// Checks order and bytes; stops after `passes` and fails where told.
class Recorder : public PassRunner {
 public:
  Recorder(const Rig& rig, int64_t passes) : rig_(rig), passes_(passes) {}

  Status BeginPass(int64_t pass) override {
    EXPECT_EQ(pass, pass_);
    EXPECT_EQ(next_unit_, 0);
    return absl::OkStatus();
  }
  Status RunUnit(int unit, const std::byte* weights) override {
    EXPECT_EQ(unit, next_unit_++);
    const UnitPart& part = rig_.units[static_cast<size_t>(unit)].parts[0];
    for (uint64_t i = 0; i < part.extent.length; ++i) {
      const std::byte expected =
          FakeReader::ByteAt(part.extent.file, part.extent.offset + i);
      if (weights[part.offset + i] != expected) {
        ++wrong_bytes_;
        break;
      }
    }
    ++units_run_;
    if (units_run_ == cancel_at_) cancel_.store(true);
    if (units_run_ == fail_at_) return absl::DataLossError("unit failed");
    return absl::OkStatus();
  }
  StatusOr<bool> EndPass(int64_t pass) override {
    EXPECT_EQ(pass, pass_++);
    EXPECT_EQ(next_unit_, static_cast<int>(rig_.units.size()));
    next_unit_ = 0;
    return pass_ < passes_;
  }

  const Rig& rig_;
  const int64_t passes_;
  int64_t pass_ = 0;
  int next_unit_ = 0;
  int64_t units_run_ = 0;
  int64_t wrong_bytes_ = 0;
  int64_t fail_at_ = -1;
  int64_t cancel_at_ = -1;
  std::atomic<bool> cancel_{false};
};

// Every unit in order with its own bytes, whatever the shape of the run: the
// number of units, residents, slots, threads, delays and completion order.
TEST(StreamGraphTest, EveryUnitMeetsItsOwnBytesInOrder) {
  uint64_t seed = 0;
  for (int units : {1, 2, 3, 5, 7, 16}) {
    for (int resident : {0, 1, units / 2, units}) {
      for (int depth : {1, 2, 3, 5, units + 3}) {
        for (int threads : {1, 2, 4}) {
          Rig rig(units, std::min(resident, units), depth, threads,
                  {.seed = ++seed, .max_delay_us = 40, .reorder = true});
          Recorder recorder(rig, 5);
          const Status status = rig.graph->Run(&recorder, 100, nullptr);
          ASSERT_TRUE(status.ok()) << status;
          EXPECT_EQ(recorder.pass_, 5);
          EXPECT_EQ(recorder.units_run_, 5 * units);
          ASSERT_EQ(recorder.wrong_bytes_, 0)
              << units << " units, " << resident << " resident, depth " << depth
              << ", " << threads << " threads";
          EXPECT_LE(rig.reader.max_in_flight(), depth);
        }
      }
    }
  }
}

TEST(StreamGraphTest, AKnownNumberOfPassesReadsNothingInVain) {
  Rig rig(8, 4, 3, 2, {});
  Recorder recorder(rig, 1000);
  ASSERT_TRUE(rig.graph->Run(&recorder, 3, nullptr).ok());
  EXPECT_EQ(recorder.pass_, 3);
  // All units once, then the four cold ones twice.
  EXPECT_EQ(rig.reader.stats().bytes, (8u + 2u * 4u) * 8192u);
}

TEST(StreamGraphTest, ResidentUnitsAreReadOnce) {
  Rig rig(6, 6, 2, 2, {});
  Recorder first(rig, 2);
  ASSERT_TRUE(rig.graph->Run(&first, 100, nullptr).ok());
  Recorder second(rig, 3);
  ASSERT_TRUE(rig.graph->Run(&second, 100, nullptr).ok());
  EXPECT_EQ(rig.reader.stats().bytes, 6u * 8192u);
  EXPECT_EQ(second.units_run_, 18);
}

TEST(StreamGraphTest, AReadErrorEndsTheRunAndTheNextRunWorks) {
  for (int threads : {1, 2, 4}) {
    for (int64_t failing : {0, 1, 5, 9, 14}) {
      Rig rig(7, 3, 2, threads,
              {.max_delay_us = 20, .reorder = true, .fail_request = failing});
      Recorder recorder(rig, 100);
      const Status status = rig.graph->Run(&recorder, 100, nullptr);
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(std::string(status.message()), HasSubstr("fake disk"));
      EXPECT_EQ(recorder.wrong_bytes_, 0);
      Recorder again(rig, 3);
      const Status second = rig.graph->Run(&again, 100, nullptr);
      EXPECT_TRUE(second.ok()) << second;
      EXPECT_EQ(again.units_run_, 21);
      EXPECT_EQ(again.wrong_bytes_, 0);
    }
  }
}

TEST(StreamGraphTest, AnErrorOfTheRunnerEndsTheRunAndTheNextRunWorks) {
  for (int64_t at : {1, 2, 6, 7, 8, 20}) {
    Rig rig(7, 2, 3, 2, {.max_delay_us = 20, .reorder = true});
    Recorder recorder(rig, 100);
    recorder.fail_at_ = at;
    EXPECT_EQ(rig.graph->Run(&recorder, 100, nullptr).message(), "unit failed");
    EXPECT_EQ(recorder.units_run_, at);
    Recorder again(rig, 2);
    EXPECT_TRUE(rig.graph->Run(&again, 100, nullptr).ok());
    EXPECT_EQ(again.wrong_bytes_, 0);
  }
}

TEST(StreamGraphTest, CancellingStopsWithinAUnit) {
  for (int64_t at : {1, 3, 7, 12}) {
    Rig rig(7, 3, 2, 2, {.max_delay_us = 20});
    Recorder recorder(rig, 1000000);
    recorder.cancel_at_ = at;
    const Status status = rig.graph->Run(&recorder, 1000000, &recorder.cancel_);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(recorder.units_run_, at);
  }
}

// Lost wake-ups and token leaks show up as a hang: many short stages through
// one slot, with as many threads as there may ever be.
TEST(StreamGraphTest, FiftyThousandStagesPassThroughOneSlot) {
  for (int threads : {1, 2, 64}) {
    Rig rig(2, 0, 1, threads, {});
    class Counter : public PassRunner {
     public:
      Status BeginPass(int64_t) override { return absl::OkStatus(); }
      Status RunUnit(int, const std::byte*) override {
        ++units;
        return absl::OkStatus();
      }
      StatusOr<bool> EndPass(int64_t) override { return true; }
      int64_t units = 0;
    } counter;
    ASSERT_TRUE(rig.graph->Run(&counter, 25000, nullptr).ok());
    EXPECT_EQ(counter.units, 50000);
  }
}

}  // namespace
}  // namespace coldstream
