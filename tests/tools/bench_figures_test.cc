#include "tools/bench_figures.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/bench_samples.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(BenchFiguresTest, RatesAreOfAllRunsAndHeldAgainstTheirCeilings) {
  const BenchFigures figures = FiguresOf(SampleMeasurement());
  EXPECT_THAT(figures.not_disk_speed, IsEmpty());
  ASSERT_TRUE(figures.generation);
  const PhaseFigures& phase = *figures.generation;
  EXPECT_EQ(phase.total.tokens, 12);
  EXPECT_DOUBLE_EQ(phase.tokens_per_second.median, 1.0);
  EXPECT_DOUBLE_EQ(phase.tokens_per_second.most, 2.0);
  // 12 GB in 8 s of reading and 10 s of running.
  EXPECT_DOUBLE_EQ(*phase.read_rate, 1.5e9);
  EXPECT_DOUBLE_EQ(*phase.wall_read_rate, 1.2e9);
  EXPECT_DOUBLE_EQ(*phase.disk_share_of_ceiling, 0.75);
  EXPECT_DOUBLE_EQ(*phase.wall_disk_share_of_ceiling, 0.6);
  // 12 passes over 2 GB in 4 s.
  EXPECT_DOUBLE_EQ(*phase.memory_rate, 6e9);
  EXPECT_DOUBLE_EQ(*phase.memory_share_of_ceiling, 0.6);
  EXPECT_DOUBLE_EQ(*phase.disagreement, 0.0);
}

TEST(BenchFiguresTest, SharesSayWhoWasBusyAndWhoWaited) {
  const BenchFigures figures = FiguresOf(SampleMeasurement());
  const PhaseFigures& phase = *figures.generation;
  EXPECT_DOUBLE_EQ(*phase.disk_busy, 0.8);
  EXPECT_DOUBLE_EQ(*phase.disk_idle, 1 - 0.8);
  EXPECT_DOUBLE_EQ(*phase.compute_busy, 0.4);
  EXPECT_DOUBLE_EQ(*phase.compute_waited, 0.6);
}

Limit LimitWith(double disk_busy, double compute, double memory_ceiling) {
  BenchMeasurement measurement = SampleMeasurement();
  measurement.runs.resize(1);
  EngineStats& used = measurement.runs[0].generation.used;
  used.disk_busy_seconds = disk_busy * used.run_seconds;
  used.compute_seconds = compute * used.run_seconds;
  measurement.memory_ceiling = memory_ceiling;
  return *FiguresOf(measurement).generation->limited_by;
}

TEST(BenchFiguresTest, TheBusiestLinkLimits) {
  EXPECT_EQ(LimitWith(0.99, 0.5, 1e12), Limit::kDisk);
  EXPECT_EQ(LimitWith(0.5, 0.99, 1e12), Limit::kArithmetic);
  EXPECT_EQ(LimitWith(0.5, 0.99, 1e6), Limit::kMemory);
  EXPECT_EQ(LimitWith(0.6, 0.5, 1e12), Limit::kTurns);
}

TEST(BenchFiguresTest, WithoutAMemoryCeilingTheComputationIsNotTakenApart) {
  BenchMeasurement measurement = SampleMeasurement();
  measurement.memory_ceiling.reset();
  measurement.plan.pass_read_bytes = 0;
  EXPECT_EQ(FiguresOf(measurement).generation->limited_by, Limit::kCompute);
}

TEST(BenchFiguresTest, AResidentModelHasNoDiskFigures) {
  BenchMeasurement measurement = SampleMeasurement();
  measurement.plan.pass_read_bytes = 0;
  const BenchFigures figures = FiguresOf(measurement);
  EXPECT_THAT(figures.not_disk_speed, IsEmpty());
  EXPECT_FALSE(figures.generation->read_rate);
  EXPECT_FALSE(figures.generation->disk_busy);
  EXPECT_FALSE(figures.generation->disagreement);
  EXPECT_TRUE(figures.generation->memory_rate);
}

TEST(BenchFiguresTest, APhaseNotMeasuredHasNoFigures) {
  BenchMeasurement measurement = SampleMeasurement();
  for (BenchRun& run : measurement.runs) run.prompt = {};
  const BenchFigures figures = FiguresOf(measurement);
  EXPECT_FALSE(figures.prompt);
  EXPECT_TRUE(figures.generation);
}

TEST(BenchFiguresTest, ReadsThatAreNotTheDisksAreHeldAgainstNoCeiling) {
  BenchMeasurement in_memory = SampleMeasurement();
  in_memory.in_memory = true;
  in_memory.disk = "tmpfs (in memory, no disk)";
  BenchMeasurement buffered = SampleMeasurement();
  buffered.direct = false;
  BenchMeasurement cached = SampleMeasurement();
  for (BenchRun& run : cached.runs)
    run.generation.read.process = run.generation.read.reader / 2;
  const auto reason = [](const BenchMeasurement& measurement) {
    const BenchFigures figures = FiguresOf(measurement);
    EXPECT_FALSE(figures.generation->disk_share_of_ceiling);
    EXPECT_TRUE(figures.generation->read_rate);
    return figures.not_disk_speed;
  };
  EXPECT_THAT(reason(in_memory), HasSubstr("tmpfs"));
  EXPECT_THAT(reason(buffered), HasSubstr("page cache"));
  EXPECT_THAT(reason(cached), HasSubstr("the others from the page cache"));
}

TEST(BenchFiguresTest, WhatOthersReadIsTheDevicesCountLessOurs) {
  BenchMeasurement measurement = SampleMeasurement();
  EXPECT_FALSE(FiguresOf(measurement).read_by_others);
  *measurement.runs[0].generation.read.device += 1'000'000'000;
  EXPECT_EQ(FiguresOf(measurement).read_by_others, 1'000'000'000u);
  measurement.runs[0].generation.read.process.reset();
  EXPECT_FALSE(FiguresOf(measurement).read_by_others);
}

}  // namespace
}  // namespace coldstream
