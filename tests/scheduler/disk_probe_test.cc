#include "scheduler/disk_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <vector>

#include "base/byte_units.h"
#include "io/disk_identity.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/pattern_file.h"
#include "tests/support/slow_backend.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using std::chrono::microseconds;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

DiskProbeOptions OnDisk(const SlowDisk& disk, double seconds) {
  DiskProbeOptions options{.seconds = seconds};
  options.reader.wrap_backend = SlowBackend::Wrap(disk);
  return options;
}

const DiskPoint* Find(const DiskProbe& probe, uint64_t chunk, int depth) {
  for (const DiskPoint& point : probe.points) {
    if (point.chunk_bytes == chunk && point.depth == depth &&
        point.buffers == ProbeBuffers::kSlots)
      return &point;
  }
  return nullptr;
}

class DiskProbeTest : public ::testing::Test {
 protected:
  DiskProbeTest() : file_(pattern_.Open(DirectMode::kAuto)) {
    trusted_ = file_->direct() && !IdentifyDisk(*file_).in_memory;
  }
  const PatternFile pattern_{64 * kMiB};
  const std::shared_ptr<File> file_;
  bool trusted_ = false;  // the temporary folder is on a disk, read directly
};

// Where bandwidth alone limits, more in flight brings nothing.
TEST_F(DiskProbeTest, TheSmallestSettingWinsWhereAllAreAlike) {
  const auto probe = ProbeDisk(file_, OnDisk({.bytes_per_second = 100e6}, 1.0));
  ASSERT_THAT(probe, IsOk());
  EXPECT_THAT(probe->points, Not(IsEmpty()));
  // The pipe lets no more through, whatever the machine does meanwhile.
  for (const DiskPoint& point : probe->points)
    EXPECT_LE(point.bytes_per_second, 100e6);
  if (!trusted_) GTEST_SKIP() << probe->doubt;
  EXPECT_EQ(probe->doubt, "");
  EXPECT_TRUE(probe->direct);
  const DiskPoint* chosen = Find(*probe, probe->chunk_bytes, probe->depth);
  ASSERT_NE(chosen, nullptr);
  for (const DiskPoint& point : probe->points)
    EXPECT_GE(chosen->bytes_per_second, 0.98 * point.bytes_per_second);
}

// 40 ms of latency: 2 MiB in flight are 50 MB/s, 8 MiB 200.
TEST_F(DiskProbeTest, ALongLatencyIsHiddenByDepth) {
  const auto probe = ProbeDisk(file_, OnDisk({.bytes_per_second = 400e6,
                                              .latency = microseconds(40'000)},
                                             4.0));
  ASSERT_THAT(probe, IsOk());
  const DiskPoint* shallow = Find(*probe, kMiB / 2, 4);
  const DiskPoint* deep = Find(*probe, kMiB, 8);
  ASSERT_NE(shallow, nullptr);
  ASSERT_NE(deep, nullptr);
  EXPECT_GT(deep->bytes_per_second, 1.5 * shallow->bytes_per_second);
  if (!trusted_) GTEST_SKIP() << probe->doubt;
  EXPECT_GT(probe->chunk_bytes * static_cast<uint64_t>(probe->depth), 2 * kMiB);
}

TEST_F(DiskProbeTest, ASlowDiskWithJitterIsMeasuredAtItsRate) {
  const auto probe = ProbeDisk(
      file_,
      OnDisk({.bytes_per_second = 50e6, .jitter = microseconds(10'000)}, 1.5));
  ASSERT_THAT(probe, IsOk());
  EXPECT_LE(probe->bytes_per_second, 50e6);
  EXPECT_GT(probe->bytes_per_second, 0);
  uint64_t bytes = 0;
  for (const DiskPoint& point : probe->points) bytes += point.bytes;
  EXPECT_LE(bytes, 2 * 75'000'000u);  // what the time allows, not 64 MiB x 33
}

TEST_F(DiskProbeTest, OtherBuffersAreMeasuredOnRequest) {
  DiskProbeOptions options = OnDisk({.bytes_per_second = 200e6}, 0.5);
  options.memory_bytes = 8 * kMiB;
  const auto without = ProbeDisk(file_, options);
  ASSERT_THAT(without, IsOk());
  EXPECT_THAT(
      without->points,
      Not(Contains(Field(&DiskPoint::buffers, ProbeBuffers::kSmallPages))));
  options.compare_buffers = true;
  options.seconds = 2;
  const auto probe = ProbeDisk(file_, options);
  ASSERT_THAT(probe, IsOk());
  EXPECT_THAT(probe->points,
              Contains(Field(&DiskPoint::buffers, ProbeBuffers::kSmallPages)));
  EXPECT_EQ(probe->registered, Find(*probe, kMiB, 4) != nullptr &&
                                   Find(*probe, kMiB, 4)->registered);
  for (const DiskPoint& point : probe->points) {
    EXPECT_FALSE(point.registered && point.buffers != ProbeBuffers::kSlots);
    EXPECT_LE(2 * point.bytes_in_flight(), options.memory_bytes);
  }
}

TEST_F(DiskProbeTest, PreadHasNoRegisteredBuffers) {
  DiskProbeOptions options = OnDisk({.bytes_per_second = 200e6}, 0.3);
  options.reader.backend = IoBackendKind::kPread;
  const auto probe = ProbeDisk(file_, options);
  ASSERT_THAT(probe, IsOk());
  EXPECT_EQ(probe->backend, "pread");
  EXPECT_FALSE(probe->registered);
}

TEST_F(DiskProbeTest, ATinyFileGivesTheDefaultsAndSaysWhy) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{4097}, uint64_t{100'000}}) {
    const PatternFile tiny(size);
    const auto probe =
        ProbeDisk(tiny.Open(DirectMode::kAuto), {.seconds = 0.2});
    ASSERT_THAT(probe, IsOk());
    EXPECT_NE(probe->doubt, "");
    EXPECT_EQ(probe->chunk_bytes, ReaderOptions().chunk_bytes);
    EXPECT_EQ(probe->depth, ReaderOptions().depth);
  }
}

TEST_F(DiskProbeTest, AnEmptyFileIsNotRead) {
  const PatternFile empty(0);
  const auto probe = ProbeDisk(empty.Open(DirectMode::kAuto), {});
  ASSERT_THAT(probe, IsOk());
  EXPECT_EQ(probe->doubt, "the file is empty");
  EXPECT_THAT(probe->points, IsEmpty());
}

TEST_F(DiskProbeTest, ABufferedFileIsNotTakenForADisk) {
  if (IdentifyDisk(*file_).in_memory) GTEST_SKIP() << "no disk here";
  const auto probe = ProbeDisk(pattern_.Open(DirectMode::kOff),
                               OnDisk({.bytes_per_second = 100e6}, 0.3));
  ASSERT_THAT(probe, IsOk());
  EXPECT_FALSE(probe->direct);
  EXPECT_THAT(probe->doubt, HasSubstr("page cache"));
}

TEST_F(DiskProbeTest, AReadErrorIsTheProbes) {
  FaultTable table;
  table.weights = {};
  table.With(Fault::kIoError, 1);
  DiskProbeOptions options;
  options.reader.wrap_backend = [&](std::unique_ptr<ReadBackend> inner) {
    return std::make_unique<FaultyBackend>(std::move(inner), table);
  };
  EXPECT_THAT(ProbeDisk(file_, options), StatusIs(absl::StatusCode::kInternal));
}

TEST_F(DiskProbeTest, ATimeThatWouldNeverBeOverIsRefused) {
  for (const double seconds :
       {std::numeric_limits<double>::quiet_NaN(),
        std::numeric_limits<double>::infinity(), 0.0, -1.0}) {
    EXPECT_THAT(ProbeDisk(file_, {.seconds = seconds}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST_F(DiskProbeTest, CancelEndsIt) {
  const std::atomic<bool> cancel = true;
  EXPECT_THAT(ProbeDisk(file_, {.cancel = &cancel}),
              StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace coldstream
