// What the graph itself costs: steps that read nothing and compute nothing.
//
//   stream_graph_bench [UNITS [PASSES [THREADS [DEPTH]]]]   (10000 10 2 4)
//
// Every unit is cold, so every step goes through plan, admit, read, order and
// run; the reader answers at once, on its own thread. Prints microseconds a
// step and the growth of resident memory over the passes after the first.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/system_limits.h"
#include "graphs/stream_graph.h"
#include "scheduler/memory_plan.h"
#include "tests/support/instant_reader.h"

namespace coldstream {
namespace {

constexpr uint64_t kUnitBytes = 4096;

std::vector<WeightUnit> MakeUnits(int count) {
  std::vector<WeightUnit> units(static_cast<size_t>(count));
  uint64_t offset = 0;
  for (WeightUnit& unit : units) {
    unit.name = "unit";
    unit.parts.push_back({{0, offset, kUnitBytes}, 0});
    offset += kUnitBytes;
    const uint64_t sizes[] = {offset};
    const uint32_t alignments[] = {4096};
    LayOutUnit(sizes, alignments, 0, &unit);
  }
  return units;
}

class Idle final : public PassRunner {
 public:
  Status BeginPass(int64_t) override { return absl::OkStatus(); }
  Status RunUnit(int, const std::byte*) override { return absl::OkStatus(); }
  StatusOr<bool> EndPass(int64_t pass) override {
    if (pass == 0) resident_after_first_ = CurrentRssBytes();
    return true;
  }
  uint64_t resident_after_first_ = 0;
};

int Main(int unit_count, int64_t passes, int threads, int depth) {
  const std::vector<WeightUnit> units = MakeUnits(unit_count);
  MemoryPlan plan;
  plan.resident.assign(units.size(), false);
  plan.resident_offset.assign(units.size(), 0);
  plan.slot_bytes = kUnitBytes;
  plan.slot_count = depth;
  const std::unique_ptr<Device> device = CreateCpuDevice();
  StatusOr<WeightStore> store = WeightStore::Create(units, plan, device.get());
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", MessageOf(store.status()).c_str());
    return 1;
  }
  InstantReader reader;
  Parallel parallel(threads);
  StreamGraph graph({&parallel, &reader, &*store, depth, nullptr});
  Idle idle;
  const auto begin = std::chrono::steady_clock::now();
  const Status status = graph.Run(&idle, passes, nullptr);
  const std::chrono::duration<double, std::micro> spent =
      std::chrono::steady_clock::now() - begin;
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", MessageOf(status).c_str());
    return 1;
  }
  const auto steps = static_cast<double>(passes) * unit_count;
  const uint64_t resident = CurrentRssBytes();
  const uint64_t grown = resident > idle.resident_after_first_
                             ? resident - idle.resident_after_first_
                             : 0;
  std::printf(
      "%.0f steps of %d units, %d threads, depth %d: %.2f us a step; "
      "resident memory grew by %.1f KiB after the first pass\n",
      steps, unit_count, threads, depth, spent.count() / steps,
      static_cast<double>(grown) / 1024);
  return 0;
}

}  // namespace
}  // namespace coldstream

int main(int argc, char** argv) {
  const auto number = [&](int i, int fallback) {
    return argc > i ? std::atoi(argv[i]) : fallback;
  };
  return coldstream::Main(number(1, 10000), number(2, 10), number(3, 2),
                          number(4, 4));
}
