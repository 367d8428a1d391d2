#include "tools/tune_measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "runtime/engine_plan.h"
#include "tests/support/slow_backend.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

using std::chrono::microseconds;

class TuneMeasurementTest : public ::testing::Test {
 protected:
  // About 6 MiB of weights in units of 200 KiB.
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    TinyModelOptions options;
    options.layers = 8;
    options.hidden = 128;
    options.heads = 4;
    options.kv_heads = 2;
    options.head_dim = 32;
    options.ffn = 1792;
    ASSERT_THAT(WriteTinyModel(dir_->Path("model.gguf"), options), IsOk());
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }

  TuneMeasurementTest() {
    flags_.stream.model = dir_->Path("model.gguf");
    flags_.probe_seconds = 0;
    options_.context = 64;
    options_.threads = 1;
    options_.batch_tokens = 1;
    options_.reader.chunk_bytes = 64 << 10;
  }

  // A budget that leaves about a third of the weights to the slots and the
  // disk.
  void TakeLittleMemory() {
    options_.ram_bytes = 1 << 30;
    const auto model = Model::Open({.path = flags_.stream.model});
    const auto plan = PlanEngine(**model, options_);
    ASSERT_THAT(plan, IsOk());
    options_.ram_bytes =
        plan->memory.fixed.total() + plan->memory.resident_bytes * 2 / 3;
  }

  StatusOr<TuneMeasurement> Tune() {
    return MeasureTune(flags_, options_, [this](const std::string& line) {
      progress_.push_back(line);
    });
  }

  static TempDir* dir_;
  TuneFlags flags_;
  EngineOptions options_;
  std::vector<std::string> progress_;
};

TempDir* TuneMeasurementTest::dir_ = nullptr;

TEST_F(TuneMeasurementTest, NothingIsTunedWhereEverythingIsResident) {
  options_.ram_bytes = 1 << 30;
  const auto tune = Tune();
  ASSERT_THAT(tune, IsOk());
  EXPECT_FALSE(tune->streams());
  EXPECT_TRUE(tune->result.curve.empty());
  EXPECT_TRUE(progress_.empty());
}

// 50 MB/s with 10 to 30 ms before a read begins: one unit at a time waits for
// that every time, twice as long as its bytes take.
TEST_F(TuneMeasurementTest, OnASlowDiskWithJitterDepthMattersAndIsChosen) {
  TakeLittleMemory();
  flags_.stream.io = IoBackendKind::kPread;
  flags_.seconds = 12;
  flags_.stream.io_depth = 64;
  flags_.stream.io_chunk = 64 << 10;
  options_.reader.depth = 64;
  options_.reader.backend = IoBackendKind::kPread;
  options_.reader.wrap_backend =
      SlowBackend::Wrap({.bytes_per_second = 50e6,
                         .latency = microseconds(10'000),
                         .jitter = microseconds(20'000)});
  const auto tune = Tune();
  ASSERT_THAT(tune, IsOk());
  ASSERT_TRUE(tune->streams());
  const std::vector<TuneEntry>& curve = tune->result.curve;
  const TuneEntry& chosen = curve[tune->result.chosen];
  const auto shallow = std::find_if(
      curve.begin(), curve.end(),
      [](const TuneEntry& e) { return e.point.prefetch_depth == 1; });
  ASSERT_NE(shallow, curve.end());
  EXPECT_GT(chosen.point.prefetch_depth, 1);
  EXPECT_LT(shallow->passes_per_second(), 0.8 * chosen.passes_per_second());
  for (const TuneEntry& entry : curve) {
    EXPECT_EQ(entry.point.io_depth, 64);  // fixed by the flags
    EXPECT_EQ(entry.point.chunk_bytes, 64u << 10);
    EXPECT_LE(entry.bytes_per_second(), 1.1 * 50e6);
  }
  EXPECT_FALSE(progress_.empty());
}

TEST_F(TuneMeasurementTest, ASampleCountsSteadyPassesAlone) {
  TakeLittleMemory();
  flags_.stream.prefetch_depth = 2;
  flags_.stream.io = IoBackendKind::kPread;
  flags_.stream.io_depth = 4;
  flags_.stream.io_chunk = 64 << 10;
  flags_.passes = 5;
  options_.reader.depth = 4;
  options_.prefetch_depth = 2;
  const auto tune = Tune();
  ASSERT_THAT(tune, IsOk());
  ASSERT_TRUE(tune->streams());
  ASSERT_EQ(tune->result.curve.size(), 1u);
  const TuneEntry& entry = tune->result.curve[0];
  // Not the resident weights that the first pass loads: what is read ahead at
  // the beginning and at the end differs by the slots at most.
  const uint64_t expected =
      tune->pass_read_bytes * static_cast<uint64_t>(entry.passes);
  EXPECT_NEAR(static_cast<double>(entry.bytes), static_cast<double>(expected),
              0.1 * static_cast<double>(expected));
  EXPECT_EQ(tune->Chosen().prefetch_depth, 2);
  EXPECT_EQ(tune->Chosen().backend, IoBackendKind::kPread);
}

TEST_F(TuneMeasurementTest, TheKeyIsThatOfLaterRuns) {
  TakeLittleMemory();
  flags_.seconds = 0.1;
  const auto tune = Tune();
  ASSERT_THAT(tune, IsOk());
  EXPECT_EQ(tune->key.ram_bytes, options_.ram_bytes);
  EXPECT_EQ(tune->key.threads, 1);
  EXPECT_TRUE(tune->result.out_of_time);
  EXPECT_GT(tune->Chosen().tokens_per_second, 0);
}

TEST_F(TuneMeasurementTest, ABudgetThatIsTooSmallIsTheError) {
  options_.ram_bytes = 4 << 20;
  EXPECT_THAT(Tune(), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(TuneMeasurementTest, CancelEndsIt) {
  TakeLittleMemory();
  const std::atomic<bool> cancel = true;
  options_.cancel = &cancel;
  EXPECT_THAT(Tune(), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace coldstream
