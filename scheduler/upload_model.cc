#include "scheduler/upload_model.h"

#include <algorithm>
#include <deque>

#include "base/check.h"
#include "scheduler/pass_schedule.h"

namespace coldstream {
namespace {

// Passes until the steady state: the pipeline is full after one.
constexpr int kPasses = 4;

// The clocks of the three resources and of the host, and when each slot and
// staging buffer was last given back.
class Playback {
 public:
  explicit Playback(const UploadPassShape& shape)
      : shape_(shape),
        turns_(static_cast<size_t>(shape.slots), 0.0),
        slot_used_(static_cast<size_t>(shape.slots), 0.0),
        staging_free_(static_cast<size_t>(shape.staging_buffers), 0.0) {
    CHECK(shape.slots >= 1 && shape.staging_buffers >= 1);
  }

  void RunPass(const std::vector<Stage>& stages) {
    for (const Stage& stage : stages) RunStage(stage);
    compute_clock_ += shape_.seconds_between;
    busy_.compute_seconds += shape_.seconds_between;
    queued_ = compute_clock_;
  }

  PassPrediction Times() const {
    PassPrediction times = busy_;
    times.seconds = compute_clock_;
    return times;
  }

 private:
  void RunStage(const Stage& stage) {
    const double turn = turns_.front();
    turns_.pop_front();
    const int cold = stage.loaded_unit();
    if (cold >= 0) {
      queued_ = std::max(queued_, Read(cold, turn));
      compute_clock_ = std::max({compute_clock_, queued_, Copy(cold, turn)});
    }
    compute_clock_ = std::max(compute_clock_, queued_);
    turns_.push_back(queued_);
    for (int unit = stage.begin; unit < stage.end; ++unit) {
      Compute(unit);
      if (unit == cold) slot_used_.push_back(compute_clock_);
    }
  }

  // The sides take turns, so that the clock of either will do for both.
  void Compute(int unit) {
    const bool on_cpu =
        shape_.on_cpu != nullptr && (*shape_.on_cpu)[static_cast<size_t>(unit)];
    double seconds = CostOf(unit).compute_seconds;
    if (on_cpu != on_cpu_) seconds += shape_.crossing_seconds;
    on_cpu_ = on_cpu;
    compute_clock_ += seconds;
    busy_.compute_seconds += seconds;
    if (!on_cpu) return;
    busy_.cpu_seconds += seconds;
    queued_ = compute_clock_;
  }

  // When the bytes of `unit` are in host memory.
  double Read(int unit, double turn) {
    if (shape_.in_host[static_cast<size_t>(unit)]) return turn;
    const double seconds = BytesOf(unit) / shape_.disk_bytes_per_second;
    disk_clock_ =
        std::max({disk_clock_, turn, staging_free_.front()}) + seconds;
    staging_free_.pop_front();
    busy_.disk_seconds += seconds;
    return disk_clock_;
  }

  // When they are in a slot.
  double Copy(int unit, double turn) {
    const bool staged = !shape_.in_host[static_cast<size_t>(unit)];
    const double there = staged ? disk_clock_ : turn;
    const double seconds = BytesOf(unit) / shape_.upload_bytes_per_second;
    upload_clock_ =
        std::max({upload_clock_, there, slot_used_.front()}) + seconds;
    slot_used_.pop_front();
    busy_.upload_seconds += seconds;
    if (staged) staging_free_.push_back(upload_clock_);
    return upload_clock_;
  }

  const UnitCost& CostOf(int unit) const {
    return shape_.units[static_cast<size_t>(unit)];
  }
  double BytesOf(int unit) const {
    return static_cast<double>(CostOf(unit).read_bytes);
  }

  const UploadPassShape& shape_;
  std::deque<double> turns_;      // when a stage was queued, by slot
  std::deque<double> slot_used_;  // when what was in a slot was computed
  std::deque<double> staging_free_;
  double queued_ = 0;  // the host has queued everything so far
  double disk_clock_ = 0;
  double upload_clock_ = 0;
  double compute_clock_ = 0;
  bool on_cpu_ = false;  // what was computed last
  PassPrediction busy_;
};

}  // namespace

PassPrediction PredictUploadPass(const UploadPassShape& shape) {
  const size_t units = shape.units.size();
  CHECK(shape.on_device.size() == units && shape.in_host.size() == units);
  std::vector<bool> cold(units);
  bool reads = false;
  bool copies = false;
  for (size_t i = 0; i < units; ++i) {
    cold[i] =
        !shape.on_device[i] && (shape.on_cpu == nullptr || !(*shape.on_cpu)[i]);
    copies = copies || cold[i];
    reads = reads || (cold[i] && !shape.in_host[i]);
  }
  CHECK(!reads || shape.disk_bytes_per_second > 0);
  CHECK(!copies || shape.upload_bytes_per_second > 0);
  const std::vector<Stage> stages = MakeStages(cold);
  Playback playback(shape);
  for (int pass = 1; pass < kPasses; ++pass) playback.RunPass(stages);
  const PassPrediction before = playback.Times();
  playback.RunPass(stages);
  const PassPrediction after = playback.Times();
  return {.seconds = after.seconds - before.seconds,
          .disk_seconds = after.disk_seconds - before.disk_seconds,
          .compute_seconds = after.compute_seconds - before.compute_seconds,
          .upload_seconds = after.upload_seconds - before.upload_seconds,
          .cpu_seconds = after.cpu_seconds - before.cpu_seconds};
}

}  // namespace coldstream
