#include "scheduler/tuner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace coldstream {
namespace {

constexpr int kVisits = 2;       // of a point in a race
constexpr int kFinalVisits = 4;  // of one in the last
constexpr int kRounds = 3;       // over the axes, at most
constexpr double kNearBest = 0.98;
constexpr size_t kFinalists = 5;
// What one visit may be off, before repeats have shown it: as if that many
// repeats had shown this much.
constexpr double kPriorNoise = 0.03;
constexpr double kPriorRepeats = 4;
// A point is out if it would have to be wrong by this many deviations.
constexpr double kDeviations = 2;
// A visit ends early below this share of the best.
constexpr double kGiveUp = 0.8;

bool CannotBeHad(const Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsInvalidArgument(status) ||
         absl::IsUnavailable(status);
}

enum class Axis { kMode, kPrefetchDepth, kChunk, kIoDepth };
constexpr Axis kAxes[] = {Axis::kMode, Axis::kPrefetchDepth, Axis::kChunk,
                          Axis::kIoDepth};
// Where memory goes first.
constexpr Axis kShrinkOrder[] = {Axis::kPrefetchDepth, Axis::kIoDepth,
                                 Axis::kChunk};

// A point in a race; its rates in this race alone, by visit.
struct Runner {
  size_t entry = 0;  // in the curve
  std::vector<double> rates = {};
  bool out = false;

  double mean() const {
    if (rates.empty()) return 0;
    return std::accumulate(rates.begin(), rates.end(), 0.0) /
           static_cast<double>(rates.size());
  }
};

class Tuner {
 public:
  Tuner(const TuneSpace& space, const TuneOptions& options,
        const TuneMeasure& measure)
      : space_(space), options_(options), measure_(measure) {}

  StatusOr<TuneResult> Run(const TunePoint& start) {
    ASSIGN_OR_RETURN(const TunePoint best, Climb(start));
    ASSIGN_OR_RETURN(const TunePoint smallest, Shrink(best));
    ASSIGN_OR_RETURN(result_.chosen, LastRace(best, smallest));
    RETURN_IF_ERROR(ShowTheRest());
    result_.noise = Noise();
    return std::move(result_);
  }

 private:
  TuneEntry& entry(const Runner& runner) { return result_.curve[runner.entry]; }

  size_t EntryOf(const TunePoint& point) {
    for (size_t i = 0; i < result_.curve.size(); ++i)
      if (result_.curve[i].point == point) return i;
    result_.curve.push_back({.point = point});
    return result_.curve.size() - 1;
  }

  // `point` with every value of the axis, itself first.
  std::vector<TunePoint> Along(Axis axis, const TunePoint& point) const {
    std::vector<TunePoint> points = {point};
    const auto add = [&](const auto& values, auto field) {
      for (const auto& value : values) {
        TunePoint other = point;
        other.*field = value;
        if (!(other == point)) points.push_back(other);
      }
    };
    switch (axis) {
      case Axis::kMode:
        for (size_t mode = 0; mode < space_.modes.size(); ++mode) {
          if (mode == point.mode || space_.modes[mode].shown_only) continue;
          points.push_back(point);
          points.back().mode = mode;
        }
        break;
      case Axis::kPrefetchDepth:
        add(space_.prefetch_depths, &TunePoint::prefetch_depth);
        break;
      case Axis::kChunk:
        add(space_.chunks, &TunePoint::chunk_bytes);
        break;
      case Axis::kIoDepth:
        add(space_.io_depths, &TunePoint::io_depth);
        break;
    }
    return points;
  }

  bool OutOfTime() {
    if (options_.seconds > 0 && spent_seconds_ >= options_.seconds)
      result_.out_of_time = true;
    return result_.out_of_time;
  }

  // Measures a visit of `runner`; `best` is the race's best mean so far.
  Status Visit(double best, Runner* runner) {
    const TunePoint point = entry(*runner).point;
    const StatusOr<TuneSample> sample =
        measure_(point, options_.passes, kGiveUp * best);
    TuneEntry& entered = entry(*runner);
    if (!sample.ok()) {
      if (!CannotBeHad(sample.status())) return sample.status();
      if (entered.passes == 0) entered.status = sample.status();
      runner->out = true;
      return absl::OkStatus();
    }
    CHECK(sample->passes > 0 && sample->seconds > 0);
    entered.passes += sample->passes;
    entered.seconds += sample->seconds;
    entered.bytes += sample->bytes;
    entered.memory_bytes = sample->memory_bytes;
    spent_seconds_ += std::max(sample->seconds, sample->cost_seconds);
    runner->rates.push_back(sample->passes / sample->seconds);
    return absl::OkStatus();
  }

  static double BestMean(const std::vector<Runner>& runners) {
    double best = 0;
    for (const Runner& runner : runners) best = std::max(best, runner.mean());
    return best;
  }

  double Noise() const {
    return std::sqrt(
        (kPriorRepeats * kPriorNoise * kPriorNoise + squared_deviations_) /
        (kPriorRepeats + repeats_));
  }

  // What repeats of a point differ by, in this race.
  void LearnNoise(const std::vector<Runner>& runners) {
    for (const Runner& runner : runners) {
      if (runner.rates.size() < 2) continue;
      for (const double rate : runner.rates) {
        const double off = rate / runner.mean() - 1;
        squared_deviations_ += off * off;
      }
      repeats_ += static_cast<double>(runner.rates.size() - 1);
    }
  }

  void DropLosers(std::vector<Runner>* runners) {
    const double limit = kNearBest * BestMean(*runners);
    for (Runner& runner : *runners) {
      if (runner.out || runner.rates.empty()) continue;
      const double error =
          Noise() / std::sqrt(static_cast<double>(runner.rates.size()));
      if (runner.mean() * (1 + kDeviations * error) >= limit) continue;
      runner.out = true;
      entry(runner).dropped = true;
    }
  }

  // Lets the points race; those that could be had, with their rates.
  StatusOr<std::vector<Runner>> Race(const std::vector<TunePoint>& points,
                                     int visits) {
    std::vector<Runner> runners;
    runners.reserve(points.size());
    for (const TunePoint& point : points) runners.push_back({EntryOf(point)});
    for (int visit = 0; visit < visits; ++visit) {
      for (size_t i = 0; i < runners.size(); ++i) {
        Runner& runner = runners[visit % 2 == 0 ? i : runners.size() - 1 - i];
        // The first point of all is always measured.
        if (spent_seconds_ > 0 && OutOfTime()) break;
        if (!runner.out) RETURN_IF_ERROR(Visit(BestMean(runners), &runner));
      }
      DropLosers(&runners);
    }
    LearnNoise(runners);
    std::erase_if(runners,
                  [](const Runner& runner) { return runner.rates.empty(); });
    return runners;
  }

  StatusOr<TunePoint> Climb(const TunePoint& start) {
    TunePoint place = start;
    for (int round = 0; round < kRounds; ++round) {
      const TunePoint before = place;
      for (const Axis axis : kAxes) {
        const std::vector<TunePoint> points = Along(axis, place);
        // A fixed axis needs no race, but the start needs a figure.
        if (points.size() == 1 && !result_.curve.empty()) continue;
        ASSIGN_OR_RETURN(std::vector<Runner> runners, Race(points, kVisits));
        if (runners.empty()) continue;
        const auto best =
            std::max_element(runners.begin(), runners.end(),
                             [](const Runner& a, const Runner& b) {
                               return a.mean() < b.mean();
                             });
        place = entry(*best).point;
        if (OutOfTime()) return place;
      }
      if (place == before) break;
    }
    return place;
  }

  bool IsSmaller(const TuneEntry& a, const TuneEntry& b) const {
    const auto key = [](const TuneEntry& e) {
      return std::tuple(e.memory_bytes, e.point.prefetch_depth,
                        e.point.io_depth, e.point.chunk_bytes, e.point.mode);
    };
    return key(a) < key(b);
  }

  // The smallest runner within 2 % of the race's best; runners are not empty.
  const Runner* SmallestNearBest(const std::vector<Runner>& runners) {
    const double limit = kNearBest * BestMean(runners);
    const Runner* smallest = nullptr;
    for (const Runner& runner : runners) {
      if (runner.mean() < limit) continue;
      if (smallest == nullptr || IsSmaller(entry(runner), entry(*smallest)))
        smallest = &runner;
    }
    return smallest;
  }

  // Goes down axis by axis, always against the best.
  StatusOr<TunePoint> Shrink(const TunePoint& best) {
    TunePoint place = best;
    for (const Axis axis : kShrinkOrder) {
      if (OutOfTime()) break;
      std::vector<TunePoint> points = Along(axis, place);
      std::erase_if(points, [&](const TunePoint& point) {
        return point.prefetch_depth > place.prefetch_depth ||
               point.io_depth > place.io_depth ||
               point.chunk_bytes > place.chunk_bytes || point == best;
      });
      if (points.empty()) continue;
      points.insert(points.begin(), best);
      ASSIGN_OR_RETURN(const std::vector<Runner> runners,
                       Race(points, kVisits));
      if (!runners.empty()) place = entry(*SmallestNearBest(runners)).point;
    }
    return place;
  }

  // The fastest points and the smallest of the fast ones, once more.
  StatusOr<size_t> LastRace(const TunePoint& best, const TunePoint& smallest) {
    std::vector<TunePoint> points = {smallest};
    const auto add = [&points](const TunePoint& point) {
      if (std::find(points.begin(), points.end(), point) == points.end())
        points.push_back(point);
    };
    add(best);
    std::vector<const TuneEntry*> fast;
    for (const TuneEntry& measured : result_.curve)
      if (measured.passes > 0) fast.push_back(&measured);
    if (fast.empty()) return result_.curve.front().status;
    std::sort(fast.begin(), fast.end(),
              [](const TuneEntry* a, const TuneEntry* b) {
                return a->passes_per_second() > b->passes_per_second();
              });
    for (const TuneEntry* measured : fast) {
      const double least =
          (kNearBest - Noise()) * fast.front()->passes_per_second();
      if (points.size() < kFinalists && measured->passes_per_second() >= least)
        add(measured->point);
    }
    ASSIGN_OR_RETURN(const std::vector<Runner> runners,
                     Race(points, kFinalVisits));
    // No time for it: what was found so far.
    if (runners.size() < points.size()) return EntryOf(best);
    return SmallestNearBest(runners)->entry;
  }

  Status ShowTheRest() {
    TunePoint point = result_.curve[result_.chosen].point;
    for (size_t mode = 0; mode < space_.modes.size(); ++mode) {
      if (!space_.modes[mode].shown_only) continue;
      point.mode = mode;
      Runner runner{EntryOf(point)};
      RETURN_IF_ERROR(Visit(0, &runner));
    }
    return absl::OkStatus();
  }

  const TuneSpace& space_;
  const TuneOptions& options_;
  const TuneMeasure& measure_;
  TuneResult result_;
  double spent_seconds_ = 0;
  double squared_deviations_ = 0;
  double repeats_ = 0;
};

}  // namespace

StatusOr<TuneResult> Tune(const TuneSpace& space, const TunePoint& start,
                          const TuneOptions& options,
                          const TuneMeasure& measure) {
  CHECK(!space.prefetch_depths.empty() && !space.io_depths.empty() &&
        !space.chunks.empty() && start.mode < space.modes.size());
  return Tuner(space, options, measure).Run(start);
}

}  // namespace coldstream
