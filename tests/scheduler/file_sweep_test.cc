#include "scheduler/file_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/host_memory.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/pattern_file.h"
#include "tests/support/slow_backend.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

constexpr uint64_t kSlot = 64 << 10;
constexpr uint64_t kSize = 40 * kSlot + 777;

class FileSweepTest : public ::testing::Test {
 protected:
  FileSweepTest()
      : file_(pattern_.Open(DirectMode::kAuto)),
        memory_(HostMemory::Allocate(4 * kSlot, "a test").value()) {}

  std::unique_ptr<Reader> MakeReader(const ReaderOptions& options) {
    return Reader::Create({file_}, options).value();
  }

  const PatternFile pattern_{kSize};
  const std::shared_ptr<File> file_;
  const HostMemory memory_;
};

TEST_F(FileSweepTest, ReadsEveryByteOnceToTheEndOfTheFile) {
  const auto reader = MakeReader({.depth = 8, .chunk_bytes = 16 << 10});
  ASSERT_THAT(SweepFile(reader.get(), {0, 0, kSize}, memory_.bytes(), kSlot),
              IsOk());
  // A direct read of the end counts the bytes that are there.
  EXPECT_EQ(reader->stats().bytes, kSize);
}

TEST_F(FileSweepTest, ReadsAStretchAndNoMore) {
  const auto reader = MakeReader({.depth = 8, .chunk_bytes = 16 << 10});
  const uint64_t begin = 5 * kSlot, end = 9 * kSlot;
  ASSERT_THAT(SweepFile(reader.get(), {0, begin, end}, memory_.bytes(), kSlot),
              IsOk());
  EXPECT_EQ(reader->stats().bytes, end - begin);
  // Each slot was used once: together they hold the stretch, in some order.
  for (uint64_t at = 0; at < memory_.size(); at += kSlot) {
    const auto slot = memory_.bytes().subspan(at, kSlot);
    const bool found = [&] {
      for (uint64_t offset = begin; offset < end; offset += kSlot) {
        if (PatternFile::FirstDifference(offset, slot) == offset + kSlot)
          return true;
      }
      return false;
    }();
    EXPECT_TRUE(found) << "slot at " << at;
  }
}

TEST_F(FileSweepTest, AnEmptyStretchReadsNothing) {
  const auto reader = MakeReader({});
  ASSERT_THAT(
      SweepFile(reader.get(), {0, kSlot, kSlot}, memory_.bytes(), kSlot),
      IsOk());
  EXPECT_EQ(reader->stats().bytes, 0u);
}

TEST_F(FileSweepTest, TheFirstErrorEndsIt) {
  FaultTable table;
  table.With(Fault::kOk, 9).With(Fault::kIoError, 1);
  ReaderOptions options{.depth = 4, .chunk_bytes = 16 << 10};
  options.wrap_backend = [&](std::unique_ptr<ReadBackend> inner) {
    return std::make_unique<FaultyBackend>(std::move(inner), table);
  };
  const auto reader = MakeReader(options);
  EXPECT_THAT(SweepFile(reader.get(), {0, 0, kSize}, memory_.bytes(), kSlot),
              StatusIs(absl::StatusCode::kInternal));
  // And leaves the reader usable for others.
  (void)SweepFile(reader.get(), {0, 0, kSlot}, memory_.bytes(), kSlot);
}

TEST_F(FileSweepTest, ASlowDiskChangesNoByte) {
  ReaderOptions options{.depth = 4, .chunk_bytes = 16 << 10};
  options.wrap_backend =
      SlowBackend::Wrap({.bytes_per_second = 200e6,
                         .latency = std::chrono::microseconds(100),
                         .jitter = std::chrono::microseconds(500)});
  const auto reader = MakeReader(options);
  ASSERT_THAT(
      SweepFile(reader.get(), {0, 0, 4 * kSlot}, memory_.bytes(), kSlot),
      IsOk());
  EXPECT_EQ(PatternFile::FirstDifference(0, memory_.bytes().first(kSlot)),
            kSlot);
  EXPECT_EQ(reader->stats().bytes, 4 * kSlot);
}

}  // namespace
}  // namespace coldstream
