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
  // `stretch`: what each takes over what it takes alone.
  Playback(const PassShape& shape, const Contention& stretch)
      : shape_(shape),
        stretch_(stretch),
        slot_free_(static_cast<size_t>(shape.slots), 0.0) {
    CHECK(shape.slots >= 1);
  }

  void RunPass(const std::vector<Stage>& stages, bool first) {
    for (const Stage& stage : stages) RunStage(stage, first);
    compute_clock_ += shape_.seconds_between;
    compute_busy_ += shape_.seconds_between;
  }

  PassPrediction Times() const {
    return {.seconds = compute_clock_,
            .disk_seconds = disk_busy_,
            .compute_seconds = compute_busy_};
  }

 private:
  void RunStage(const Stage& stage, bool first) {
    const int cold = stage.loaded_unit();
    // A stage takes the slot that came home first.
    const double admitted = slot_free_.front();
    slot_free_.pop_front();
    if (cold >= 0) {
      const double seconds = static_cast<double>(CostOf(cold).read_bytes) /
                             shape_.disk_bytes_per_second * stretch_.disk;
      disk_clock_ = std::max(disk_clock_, admitted) + seconds;
      disk_busy_ += seconds;
      compute_clock_ = std::max(compute_clock_, disk_clock_);
    }
    // Nothing, or a resident unit's own place, was filled: the slot is free.
    const bool keeps_slot =
        cold >= 0 && !(first && shape_.resident[static_cast<size_t>(cold)]);
    if (!keeps_slot) slot_free_.push_back(compute_clock_);
    for (int unit = stage.begin; unit < stage.end; ++unit) {
      compute_clock_ += CostOf(unit).compute_seconds * stretch_.compute;
      compute_busy_ += CostOf(unit).compute_seconds * stretch_.compute;
      if (unit == cold && keeps_slot) slot_free_.push_back(compute_clock_);
    }
  }

  const UnitCost& CostOf(int unit) const {
    return shape_.units[static_cast<size_t>(unit)];
  }

  const PassShape& shape_;
  const Contention stretch_;
  std::deque<double> slot_free_;
  double disk_clock_ = 0;
  double compute_clock_ = 0;
  double disk_busy_ = 0;
  double compute_busy_ = 0;
};

// Each resource is busy for a share of the pass, and the other is slower for
// that share; which depends on how long the pass is. A few rounds settle it.
// A computation that often waits slows the disk by less: what they compete for
// (a quota of processor time on a virtual machine) is then not used up. The
// square of its share fits what was measured at 25, 50, 75 and 90 % resident.
// `predict`: the pass for given stretches.
template <typename Predict>
PassPrediction WithContention(const PassShape& shape, const Predict& predict) {
  constexpr int kRounds = 12;
  PassPrediction pass = predict(Contention{});
  if (shape.contention.compute <= 1 && shape.contention.disk <= 1) return pass;
  Contention stretch;
  for (int round = 0; round < kRounds && pass.seconds > 0; ++round) {
    const auto share = [&](double busy) {
      return std::min(1.0, busy / pass.seconds);
    };
    const auto approach = [](double slower, double weight, double* now) {
      *now = (*now + 1.0 + (slower - 1.0) * weight) / 2;  // damped
    };
    const double computing = share(pass.compute_seconds);
    approach(shape.contention.compute, share(pass.disk_seconds),
             &stretch.compute);
    approach(shape.contention.disk, computing * computing, &stretch.disk);
    pass = predict(stretch);
  }
  return pass;
}

}  // namespace

const char* LinkName(Link link) {
  switch (link) {
    case Link::kDisk:
      return "disk";
    case Link::kUpload:
      return "upload";
    case Link::kCompute:
      break;
  }
  return "compute";
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
  return WithContention(shape, [&](const Contention& stretch) {
    Playback playback(shape, stretch);
    for (int pass = 1; pass < kPasses; ++pass) playback.RunPass(stages, false);
    const PassPrediction before = playback.Times();
    playback.RunPass(stages, false);
    const PassPrediction after = playback.Times();
    return PassPrediction{
        .seconds = after.seconds - before.seconds,
        .disk_seconds = after.disk_seconds - before.disk_seconds,
        .compute_seconds = after.compute_seconds - before.compute_seconds};
  });
}

PassPrediction PredictFirstPass(const PassShape& shape) {
  CHECK(shape.resident.size() == shape.units.size());
  CHECK(shape.disk_bytes_per_second > 0);
  const std::vector<Stage> stages =
      MakeStages(std::vector<bool>(shape.units.size(), true));
  return WithContention(shape, [&](const Contention& stretch) {
    Playback playback(shape, stretch);
    playback.RunPass(stages, true);
    return playback.Times();
  });
}

}  // namespace coldstream
