#include "scheduler/cost_model.h"

#include <algorithm>
#include <deque>

#include "base/check.h"
#include "scheduler/pass_schedule.h"

namespace coldstream {
namespace {

// Passes until the steady state: the pipeline is full after one.
constexpr int kPasses = 4;

// The clocks of the two resources, and when each slot was last given back.
class Playback {
 public:
  explicit Playback(const PassShape& shape)
      : shape_(shape), slot_free_(static_cast<size_t>(shape.slots), 0.0) {
    CHECK(shape.slots >= 1);
  }

  void RunPass(const std::vector<Stage>& stages, bool first) {
    for (const Stage& stage : stages) RunStage(stage, first);
    compute_clock_ += shape_.seconds_between;
    compute_busy_ += shape_.seconds_between;
  }

  double clock() const { return compute_clock_; }
  double compute_busy() const { return compute_busy_; }
  double disk_busy() const { return disk_busy_; }

 private:
  void RunStage(const Stage& stage, bool first) {
    const int cold = stage.loaded_unit();
    // A stage takes the slot that came home first.
    const double admitted = slot_free_.front();
    slot_free_.pop_front();
    if (cold >= 0) {
      const double seconds = static_cast<double>(CostOf(cold).read_bytes) /
                             shape_.disk_bytes_per_second;
      disk_clock_ = std::max(disk_clock_, admitted) + seconds;
      disk_busy_ += seconds;
      compute_clock_ = std::max(compute_clock_, disk_clock_);
    }
    // Nothing, or a resident unit's own place, was filled: the slot is free.
    const bool keeps_slot =
        cold >= 0 && !(first && shape_.resident[static_cast<size_t>(cold)]);
    if (!keeps_slot) slot_free_.push_back(compute_clock_);
    for (int unit = stage.begin; unit < stage.end; ++unit) {
      compute_clock_ += CostOf(unit).compute_seconds;
      compute_busy_ += CostOf(unit).compute_seconds;
      if (unit == cold && keeps_slot) slot_free_.push_back(compute_clock_);
    }
  }

  const UnitCost& CostOf(int unit) const {
    return shape_.units[static_cast<size_t>(unit)];
  }

  const PassShape& shape_;
  std::deque<double> slot_free_;
  double disk_clock_ = 0;
  double compute_clock_ = 0;
  double disk_busy_ = 0;
  double compute_busy_ = 0;
};

}  // namespace

const char* LinkName(Link link) {
  return link == Link::kDisk ? "disk" : "compute";
}

PassPrediction PredictPass(const PassShape& shape) {
  CHECK(shape.resident.size() == shape.units.size());
  std::vector<bool> cold(shape.units.size());
  bool any = false;
  for (size_t i = 0; i < cold.size(); ++i) {
    cold[i] = !shape.resident[i];
    any = any || cold[i];
  }
  CHECK(!any || shape.disk_bytes_per_second > 0);
  const std::vector<Stage> stages = MakeStages(cold);
  Playback playback(shape);
  for (int pass = 1; pass < kPasses; ++pass) playback.RunPass(stages, false);
  const double before = playback.clock();
  const double disk = playback.disk_busy();
  const double compute = playback.compute_busy();
  playback.RunPass(stages, false);
  return {playback.clock() - before, playback.disk_busy() - disk,
          playback.compute_busy() - compute};
}

PassPrediction PredictFirstPass(const PassShape& shape) {
  CHECK(shape.resident.size() == shape.units.size());
  CHECK(shape.disk_bytes_per_second > 0);
  Playback playback(shape);
  playback.RunPass(MakeStages(std::vector<bool>(shape.units.size(), true)),
                   true);
  return {playback.clock(), playback.disk_busy(), playback.compute_busy()};
}

}  // namespace coldstream
