#include "scheduler/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/byte_units.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

TuneSpace Space() {
  return {.prefetch_depths = {1, 2, 3, 4, 6, 8},
          .io_depths = {4, 8, 16, 32},
          .chunks = {512 * kKiB, kMiB, 2 * kMiB, 4 * kMiB, 8 * kMiB},
          .modes = {{}, {.backend = IoBackendKind::kPread}}};
}

constexpr TunePoint kStart{2, 16, kMiB, 0};

// True passes a second of a point, without noise.
using Curve = std::function<double(const TunePoint&)>;

// Measures a curve with noise on each pass and a slow drift.
class Machine {
 public:
  Machine(Curve curve, double noise, double drift, uint64_t seed)
      : curve_(std::move(curve)), noise_(noise), drift_(drift), random_(seed) {}

  StatusOr<TuneSample> operator()(const TunePoint& point, int passes,
                                  double give_up_below) {
    TuneSample sample;
    sample.memory_bytes =
        static_cast<uint64_t>(point.prefetch_depth) * 64 * kMiB;
    std::normal_distribution<double> normal(1.0, noise_);
    for (int pass = 0; pass < passes; ++pass) {
      const double wave = 1 + drift_ * std::sin(0.05 * ++passes_);
      const double rate = curve_(point) * wave * std::max(0.3, normal(random_));
      sample.seconds += 1 / rate;
      ++sample.passes;
      sample.bytes += 1'000'000;
      if (sample.passes / sample.seconds < give_up_below) break;
    }
    sample.cost_seconds = sample.seconds;
    return sample;
  }
  int passes() const { return passes_; }

 private:
  const Curve curve_;
  const double noise_;
  const double drift_;
  std::mt19937_64 random_;
  int passes_ = 0;
};

double BestOf(const TuneSpace& space, const Curve& curve) {
  double best = 0;
  for (const int depth : space.prefetch_depths)
    for (const int io_depth : space.io_depths)
      for (const uint64_t chunk : space.chunks)
        for (size_t mode = 0; mode < space.modes.size(); ++mode)
          best = std::max(best, curve({depth, io_depth, chunk, mode}));
  return best;
}

// Bytes in flight up to what the disk needs; more buys nothing.
double Saturating(const TunePoint& point, double needed_mib) {
  const double in_flight = static_cast<double>(point.chunk_bytes) / kMiB *
                           static_cast<double>(point.io_depth);
  return std::min(1.0, 0.3 + 0.7 * in_flight / needed_mib);
}

struct Shape {
  const char* name;
  Curve curve;
};
std::vector<Shape> Shapes() {
  return {
      {"plateau", [](const TunePoint&) { return 2.0; }},
      {"saturating", [](const TunePoint& p) { return 2 * Saturating(p, 16); }},
      {"needs much in flight",
       [](const TunePoint& p) { return 2 * Saturating(p, 64); }},
      {"depth matters",
       [](const TunePoint& p) {
         return 2 * (1 - std::exp(-p.prefetch_depth / 1.5));
       }},
      {"cliff past 2 MiB",
       [](const TunePoint& p) {
         return p.chunk_bytes > 2 * kMiB ? 0.7 : 2 * Saturating(p, 8);
       }},
      {"cliff past depth 4",  // the slots took the residents' memory
       [](const TunePoint& p) {
         return p.prefetch_depth > 4 ? 1.0 : 1.8 + 0.05 * p.prefetch_depth;
       }},
      {"pread is better",
       [](const TunePoint& p) {
         return (p.mode == 1 ? 2.0 : 1.6) * Saturating(p, 16);
       }},
      {"depth costs residents",
       [](const TunePoint& p) {
         return Saturating(p, 16) *
                (p.prefetch_depth == 1 ? 1.5 : 2.1 - 0.04 * p.prefetch_depth);
       }},
  };
}

TEST(TunerTest, WithoutNoiseTheChoiceIsWithinTwoPercentOfTheBest) {
  for (const Shape& shape : Shapes()) {
    const auto result =
        Tune(Space(), kStart, {}, Machine(shape.curve, 0, 0, 1));
    ASSERT_THAT(result, IsOk());
    EXPECT_GE(shape.curve(result->curve[result->chosen].point),
              0.98 * BestOf(Space(), shape.curve))
        << shape.name;
  }
}

TEST(TunerTest, WithNoiseAndDriftTheChoiceIsWithinThreePercent) {
  int runs = 0;
  int misses = 0;
  double worst = 1;
  std::string worst_shape;
  for (const Shape& shape : Shapes()) {
    const double best = BestOf(Space(), shape.curve);
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      const auto result =
          Tune(Space(), kStart, {}, Machine(shape.curve, 0.015, 0.1, seed));
      ASSERT_THAT(result, IsOk());
      const double share =
          shape.curve(result->curve[result->chosen].point) / best;
      ++runs;
      if (share < 0.97) ++misses;
      if (share < worst) {
        worst = share;
        worst_shape = shape.name;
      }
    }
  }
  // Noise may fool a finite search, but rarely and not by much.
  EXPECT_LE(misses, runs / 50) << worst_shape << " " << worst;
  EXPECT_GE(worst, 0.93) << worst_shape;
}

TEST(TunerTest, APlateauGivesTheSmallestSetting) {
  const auto result =
      Tune(Space(), kStart, {},
           Machine([](const TunePoint&) { return 2.0; }, 0, 0, 1));
  ASSERT_THAT(result, IsOk());
  const TunePoint& point = result->curve[result->chosen].point;
  EXPECT_EQ(point.prefetch_depth, 1);
  EXPECT_EQ(point.io_depth, 4);
  EXPECT_EQ(point.chunk_bytes, 512 * kKiB);
  EXPECT_EQ(point.mode, 0u);
}

TEST(TunerTest, LosersAreDroppedAndFarFewerPointsMeasuredThanThereAre) {
  const auto curve = Shapes()[3].curve;  // depth matters
  Machine machine(curve, 0.01, 0, 1);
  const auto result = Tune(Space(), kStart, {}, std::ref(machine));
  ASSERT_THAT(result, IsOk());
  EXPECT_LT(result->curve.size(), 40u);  // of 240
  EXPECT_LT(machine.passes(), 300);
  const auto shallow = std::find_if(
      result->curve.begin(), result->curve.end(),
      [](const TuneEntry& e) { return e.point.prefetch_depth == 1; });
  ASSERT_NE(shallow, result->curve.end());
  EXPECT_TRUE(shallow->dropped);
  // The curve shows what depth buys.
  EXPECT_LT(shallow->passes_per_second(),
            0.7 * result->curve[result->chosen].passes_per_second());
}

TEST(TunerTest, EveryPointIsInTheCurveOnceInTheOrderMeasured) {
  std::vector<TunePoint> seen;
  const auto result =
      Tune(Space(), kStart, {},
           [&, machine = Machine(Shapes()[1].curve, 0, 0, 1)](
               const TunePoint& point, int passes, double give_up) mutable {
             if (std::find(seen.begin(), seen.end(), point) == seen.end())
               seen.push_back(point);
             return machine(point, passes, give_up);
           });
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(result->curve.size(), seen.size());
  for (size_t i = 0; i < seen.size(); ++i)
    EXPECT_TRUE(result->curve[i].point == seen[i]) << i;
  EXPECT_TRUE(seen[0] == kStart);
}

// The second visit of a race goes the other way.
TEST(TunerTest, RepeatsAreInterleavedForwardsAndBackwards) {
  TuneSpace space = Space();
  space.io_depths = {16};
  space.chunks = {kMiB};
  space.modes = {{}};
  space.prefetch_depths = {2, 3, 4};
  std::vector<int> order;
  const auto result = Tune(
      space, kStart, {},
      [&, machine = Machine([](const TunePoint&) { return 1.0; }, 0, 0, 1)](
          const TunePoint& point, int passes, double give_up) mutable {
        order.push_back(point.prefetch_depth);
        return machine(point, passes, give_up);
      });
  ASSERT_THAT(result, IsOk());
  ASSERT_GE(order.size(), 7u);
  // The start alone (its axes before are fixed), then the race.
  EXPECT_EQ(std::vector<int>(order.begin() + 2, order.begin() + 8),
            (std::vector<int>{2, 3, 4, 4, 3, 2}));
}

TEST(TunerTest, PointsThatDoNotFitAreLeftOut) {
  const auto result =
      Tune(Space(), kStart, {},
           [machine = Machine(Shapes()[3].curve, 0, 0, 1)](
               const TunePoint& point, int passes,
               double give_up) mutable -> StatusOr<TuneSample> {
             if (point.prefetch_depth > 3)
               return absl::ResourceExhaustedError("does not fit");
             return machine(point, passes, give_up);
           });
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->curve[result->chosen].point.prefetch_depth, 3);
  EXPECT_TRUE(std::any_of(
      result->curve.begin(), result->curve.end(), [](const TuneEntry& e) {
        return absl::IsResourceExhausted(e.status) && e.passes == 0;
      }));
}

TEST(TunerTest, NoPointAtAllGivesTheStartsError) {
  EXPECT_THAT(Tune(Space(), kStart, {},
                   [](const TunePoint&, int, double) -> StatusOr<TuneSample> {
                     return absl::ResourceExhaustedError("too little");
                   }),
              StatusIs(absl::StatusCode::kResourceExhausted, "too little"));
}

TEST(TunerTest, AnyOtherErrorEndsTheSearch) {
  int calls = 0;
  EXPECT_THAT(Tune(Space(), kStart, {},
                   [&](const TunePoint&, int, double) -> StatusOr<TuneSample> {
                     ++calls;
                     return absl::CancelledError("");
                   }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(calls, 1);
}

TEST(TunerTest, ATimeBoundEndsItWithTheBestSoFar) {
  Machine machine(Shapes()[3].curve, 0, 0, 1);
  const auto result = Tune(Space(), kStart, {.seconds = 12}, std::ref(machine));
  ASSERT_THAT(result, IsOk());
  EXPECT_TRUE(result->out_of_time);
  EXPECT_LT(machine.passes(), 40);
  EXPECT_GT(result->curve[result->chosen].passes, 0);
}

TEST(TunerTest, ShownModesAreMeasuredWithTheChoiceAndNeverChosen) {
  TuneSpace space = Space();
  space.modes = {{}, {.direct = DirectMode::kOff, .shown_only = true}};
  const auto result =
      Tune(space, kStart, {},
           Machine([](const TunePoint& p) { return p.mode == 1 ? 9.0 : 2.0; },
                   0, 0, 1));
  ASSERT_THAT(result, IsOk());
  const TuneEntry& chosen = result->curve[result->chosen];
  EXPECT_EQ(chosen.point.mode, 0u);
  TunePoint shown = chosen.point;
  shown.mode = 1;
  EXPECT_TRUE(result->curve.back().point == shown);
  EXPECT_NEAR(result->curve.back().passes_per_second(), 9.0, 1e-6);
}

TEST(TunerTest, ASpaceOfOnePointIsThatPoint) {
  const TuneSpace space{{3}, {8}, {kMiB}, {{}}};
  const auto result =
      Tune(space, {3, 8, kMiB, 0}, {}, Machine(Shapes()[0].curve, 0.02, 0, 1));
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(result->curve.size(), 1u);
  EXPECT_EQ(result->chosen, 0u);
}

}  // namespace
}  // namespace coldstream
