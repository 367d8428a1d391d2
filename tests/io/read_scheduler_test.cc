// The policy, over a scripted backend: which reads go out, and what becomes of
// each kind of answer.
#include "io/read_scheduler.h"

#include <cerrno>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/pattern_file.h"
#include "tests/support/recording_completion.h"
#include "tests/support/scripted_backend.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kChunk = 4 * kBlock;

int32_t All(const RawRead& read, size_t) {
  return static_cast<int32_t>(read.length);
}

class ReadSchedulerTest : public ::testing::Test {
 protected:
  // A reader of one file of 64 blocks and a few bytes, with chunks of 4 blocks.
  void Start(int depth, DirectMode mode, ScriptedBackend::Script script) {
    file_ = pattern_.Open(mode);
    if (mode != DirectMode::kOff && !file_->direct()) {
      GTEST_SKIP() << "no O_DIRECT here: " << file_->direct_refusal();
    }
    ReaderOptions options;
    options.depth = depth;
    options.chunk_bytes = kChunk;
    auto reader = ReadScheduler::Start(
        {file_}, options,
        std::make_unique<ScriptedBackend>(&control_, 64, std::move(script)));
    ASSERT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
  }

  void Submit(uint64_t block, uint64_t blocks, RecordingCompletion* done,
              ReadPriority priority = ReadPriority::kNormal) {
    const ReadWindow window{0, block * kBlock, blocks * kBlock,
                            memory_ + block * kBlock};
    reader_->Submit({&window, 1}, priority, done);
  }

  std::vector<uint64_t> BlocksPushed() {
    std::vector<uint64_t> blocks;
    for (const RawRead& r : control_.Log()) blocks.push_back(r.offset / kBlock);
    return blocks;
  }

  void ShutGate() { control_.gate_open = false; }

  const PatternFile pattern_{64 * kBlock + 100};
  std::byte* const memory_ = reinterpret_cast<std::byte*>(kBlock * 1024);
  ScriptedBackend::Control control_;
  std::shared_ptr<File> file_;
  std::unique_ptr<ReadScheduler> reader_;
};

TEST_F(ReadSchedulerTest,
       RequestsAreServedFirstComeFirstServedUrgentOnesFirst) {
  ShutGate();
  Start(1, DirectMode::kOff, All);
  RecordingCompletion a, b, urgent;
  Submit(0, 12, &a);
  control_.AwaitPushed(1);
  Submit(20, 4, &b);
  Submit(40, 8, &urgent, ReadPriority::kUrgent);
  control_.Open();
  EXPECT_TRUE(a.Wait().ok());
  EXPECT_TRUE(b.Wait().ok());
  EXPECT_TRUE(urgent.Wait().ok());
  EXPECT_THAT(BlocksPushed(), ElementsAre(0, 40, 44, 4, 8, 20));
}

TEST_F(ReadSchedulerTest, DepthChunksAreInFlightAndNeverMore) {
  ShutGate();
  Start(5, DirectMode::kOff, All);
  RecordingCompletion done;
  Submit(0, 64, &done);
  control_.AwaitPushed(5);
  control_.Open();
  EXPECT_TRUE(done.Wait().ok());
  EXPECT_EQ(control_.most_in_flight, 5u);
  EXPECT_EQ(control_.Log().size(), 16u);
}

TEST_F(ReadSchedulerTest, ARequestIsIssuedWhileAnotherIsInFlight) {
  ShutGate();
  Start(4, DirectMode::kOff, All);
  RecordingCompletion a, b;
  Submit(0, 4, &a);
  control_.AwaitPushed(1);
  Submit(4, 4, &b);
  control_.AwaitPushed(2);  // would hang if the thread slept on
  control_.Open();
  EXPECT_TRUE(a.Wait().ok());
  EXPECT_TRUE(b.Wait().ok());
}

TEST_F(ReadSchedulerTest, AShortDirectReadIsContinuedFromItsBlock) {
  Start(2, DirectMode::kAuto, [](const RawRead& read, size_t number) {
    return number == 0 ? 5000 : static_cast<int32_t>(read.length);
  });
  if (IsSkipped()) return;
  RecordingCompletion done;
  Submit(0, 4, &done);
  EXPECT_TRUE(done.Wait().ok());
  const std::vector<RawRead> log = control_.Log();
  ASSERT_EQ(log.size(), 2u);
  const uint64_t block = BlockBytes(file_->alignment());
  const uint64_t kept = 5000 / block * block;
  EXPECT_EQ(log[1].offset, kept);
  EXPECT_EQ(log[1].length, kChunk - kept);
  EXPECT_EQ(log[1].destination, memory_ + kept);
  EXPECT_EQ(reader_->stats().retries, 1u);
  EXPECT_EQ(reader_->stats().bytes, 5000 + kChunk - kept);
}

TEST_F(ReadSchedulerTest, TheEndOfTheFileIsAskedForInWholeBlocks) {
  Start(2, DirectMode::kAuto,
        [](const RawRead&, size_t) { return static_cast<int32_t>(100); });
  if (IsSkipped()) return;
  RecordingCompletion done;
  const ReadWindow window{0, 64 * kBlock, 100, memory_};
  reader_->Submit({&window, 1}, ReadPriority::kNormal, &done);
  EXPECT_TRUE(done.Wait().ok());
  const std::vector<RawRead> log = control_.Log();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0].length % file_->alignment().offset, 0u);
  EXPECT_GE(log[0].length, 100u);
}

TEST_F(ReadSchedulerTest, EveryReadKeepsTheAlignmentThatTheFileAsksFor) {
  for (const DirectAlignment& asked :
       {DirectAlignment{.memory = 4, .offset = 512},
        DirectAlignment{.memory = 4096, .offset = 512},
        DirectAlignment{.memory = 512, .offset = 4096},
        DirectAlignment{.memory = 4096, .offset = 65536}}) {
    auto file = File::Open(
        pattern_.path(), DirectMode::kAuto,
        [&](int, uint64_t) { return StatusOr<DirectAlignment>(asked); });
    ASSERT_TRUE(file.ok()) << file.status();
    if (!(*file)->direct()) GTEST_SKIP() << (*file)->direct_refusal();
    ScriptedBackend::Control control;
    ReaderOptions options;
    options.chunk_bytes = kChunk;  // less than a block of the last kind
    auto reader = ReadScheduler::Start(
        {*file}, options,
        std::make_unique<ScriptedBackend>(
            &control, 64, [](const RawRead& read, size_t number) {
              // Every other read is short by an odd count.
              const uint32_t cut = number % 2 == 0 ? read.length / 3 + 1 : 0;
              return static_cast<int32_t>(read.length - cut);
            }));
    ASSERT_TRUE(reader.ok()) << reader.status();
    RecordingCompletion done;
    std::byte* const memory = reinterpret_cast<std::byte*>(65536 * 16);
    const ReadWindow window{0, 0, pattern_.size(), memory};
    (*reader)->Submit({&window, 1}, ReadPriority::kNormal, &done);
    ASSERT_TRUE(done.Wait().ok()) << done.Wait();
    EXPECT_GT((*reader)->stats().retries, 0u);
    for (const RawRead& read : control.Log()) {
      EXPECT_EQ(read.offset % asked.offset, 0u);
      EXPECT_EQ(read.length % asked.offset, 0u);
      EXPECT_EQ(reinterpret_cast<uint64_t>(read.destination) % asked.memory,
                0u);
    }
    reader->reset();  // before its control
  }
}

TEST_F(ReadSchedulerTest, ZeroBytesBeforeTheEndIsDataLossWithThePlace) {
  Start(1, DirectMode::kOff, [](const RawRead& read, size_t) {
    return read.offset == 8 * kBlock ? 0 : static_cast<int32_t>(read.length);
  });
  RecordingCompletion done;
  Submit(4, 12, &done);
  const Status status = done.Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr(pattern_.path()), HasSubstr("offset 32768"),
                    HasSubstr("expected 16384 bytes"), HasSubstr("got 0")));
}

TEST_F(ReadSchedulerTest, AReadThatKeepsEndingInsideABlockIsDataLoss) {
  Start(1, DirectMode::kAuto,
        [](const RawRead&, size_t) { return static_cast<int32_t>(100); });
  if (IsSkipped()) return;
  RecordingCompletion done;
  Submit(0, 4, &done);
  const Status status = done.Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("got 100"));
  EXPECT_LE(control_.Log().size(), 16u);
}

TEST_F(ReadSchedulerTest, ADeviceErrorIsInternalWithThePlace) {
  Start(4, DirectMode::kOff, [](const RawRead& read, size_t) {
    return read.offset == 8 * kBlock ? -EIO : static_cast<int32_t>(read.length);
  });
  RecordingCompletion bad, good;
  Submit(0, 32, &bad);
  Submit(32, 8, &good);
  const Status status = bad.Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(
      MessageOf(status),
      AllOf(HasSubstr(pattern_.path()), HasSubstr("16384 bytes"),
            HasSubstr("offset 32768"), HasSubstr("Input/output error")));
  EXPECT_TRUE(good.Wait().ok());
}

TEST_F(ReadSchedulerTest, AFailedRequestEndsOnlyWhenNothingOfItIsInFlight) {
  ShutGate();
  Start(3, DirectMode::kOff, [](const RawRead& read, size_t number) {
    return number == 0 ? -EIO : static_cast<int32_t>(read.length);
  });
  RecordingCompletion done;
  Submit(0, 64, &done);
  control_.AwaitPushed(3);
  control_.Open();
  EXPECT_EQ(done.Wait().code(), absl::StatusCode::kInternal);
  // Two more were under way and had to come home; none was issued after.
  EXPECT_EQ(control_.Log().size(), 3u);
  EXPECT_EQ(reader_->stats().reads, 3u);
  EXPECT_EQ(done.calls(), 1);
}

TEST_F(ReadSchedulerTest, EagainAndEintrAreTriedAgain) {
  Start(2, DirectMode::kOff, [](const RawRead& read, size_t number) {
    if (number < 3) return -EAGAIN;
    if (number < 6) return -EINTR;
    return static_cast<int32_t>(read.length);
  });
  RecordingCompletion done;
  Submit(0, 4, &done);
  EXPECT_TRUE(done.Wait().ok());
  EXPECT_EQ(reader_->stats().retries, 6u);
}

TEST_F(ReadSchedulerTest, EndlessEagainIsAnErrorInTheEnd) {
  Start(2, DirectMode::kOff, [](const RawRead&, size_t) { return -EAGAIN; });
  RecordingCompletion done;
  Submit(0, 16, &done);
  const Status status = done.Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(MessageOf(status), HasSubstr("temporarily unavailable"));
}

TEST_F(ReadSchedulerTest, ReadsGoOnWhileOneIsPaused) {
  Start(2, DirectMode::kOff, [](const RawRead& read, size_t) {
    return read.offset == 0 ? -EAGAIN : static_cast<int32_t>(read.length);
  });
  RecordingCompletion stuck, good;
  Submit(0, 4, &stuck);
  Submit(4, 60, &good);
  EXPECT_TRUE(good.Wait().ok());
  EXPECT_EQ(stuck.Wait().code(), absl::StatusCode::kInternal);
}

TEST_F(ReadSchedulerTest, ADirectReadRefusedAtRunTimeGoesOnBufferedOneWarning) {
  Start(4, DirectMode::kAuto, [](const RawRead& read, size_t) {
    return read.buffered ? static_cast<int32_t>(read.length) : -EINVAL;
  });
  if (IsSkipped()) return;
  EXPECT_TRUE(reader_->direct(0));
  RecordingCompletion done;
  Submit(0, 64, &done);
  EXPECT_TRUE(done.Wait().ok());
  EXPECT_FALSE(reader_->direct(0));
  const std::vector<std::string> warnings = reader_->warnings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0],
              AllOf(HasSubstr(pattern_.path()), HasSubstr("Invalid argument")));
}

TEST_F(ReadSchedulerTest, ABufferedReadRefusedIsAnError) {
  Start(1, DirectMode::kOff, [](const RawRead&, size_t) { return -EINVAL; });
  RecordingCompletion done;
  Submit(0, 4, &done);
  EXPECT_EQ(done.Wait().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(reader_->warnings().empty());
}

TEST_F(ReadSchedulerTest, ClosingCancelsWhatWasNotBegunAndWaitsForTheRest) {
  ShutGate();
  Start(2, DirectMode::kOff, All);
  RecordingCompletion begun, half, queued;
  Submit(0, 4, &begun);
  Submit(4, 12, &half);
  Submit(16, 4, &queued);
  control_.AwaitPushed(2);
  std::thread closer([this] { reader_.reset(); });
  EXPECT_EQ(queued.Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(begun.calls(), 0);
  EXPECT_EQ(half.calls(), 0);
  control_.Open();
  closer.join();
  EXPECT_TRUE(begun.Wait().ok());
  EXPECT_EQ(half.Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(control_.Log().size(), 2u);
}

TEST_F(ReadSchedulerTest, CancelQueuedEndsWhatWasSubmittedAndNothingLater) {
  ShutGate();
  Start(2, DirectMode::kOff, All);
  RecordingCompletion begun, half, queued, later;
  Submit(0, 4, &begun);
  Submit(4, 12, &half);
  control_.AwaitPushed(2);
  Submit(16, 4, &queued, ReadPriority::kUrgent);
  reader_->CancelQueued();
  Submit(20, 4, &later);
  EXPECT_EQ(queued.Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(half.calls(), 0);  // a chunk of it is in flight
  control_.Open();
  EXPECT_TRUE(later.Wait().ok());
  (void)begun.Wait();
  EXPECT_EQ(half.Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(ReadSchedulerTest, CancelQueuedEndsPausedReads) {
  Start(1, DirectMode::kOff, [](const RawRead&, size_t) { return -EAGAIN; });
  RecordingCompletion paused;
  Submit(0, 4, &paused);
  control_.AwaitPushed(3);
  reader_->CancelQueued();
  EXPECT_EQ(paused.Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(ReadSchedulerTest, ABrokenBackendFailsAllRequestsAndLaterOnes) {
  ShutGate();
  Start(2, DirectMode::kOff, All);
  RecordingCompletion in_flight, queued, later;
  Submit(0, 4, &in_flight);
  Submit(4, 32, &queued);
  control_.AwaitPushed(2);
  control_.Break(absl::InternalError("ring gone"));
  EXPECT_THAT(MessageOf(in_flight.Wait()), HasSubstr("ring gone"));
  EXPECT_THAT(MessageOf(queued.Wait()), HasSubstr("ring gone"));
  Submit(0, 4, &later);
  EXPECT_THAT(MessageOf(later.Wait()), HasSubstr("ring gone"));
}

TEST_F(ReadSchedulerTest, ABackendThatDoesNotStartIsTheErrorOfStart) {
  control_.start = absl::UnavailableError("no ring");
  const auto reader = ReadScheduler::Start(
      {pattern_.Open(DirectMode::kOff)}, ReaderOptions(),
      std::make_unique<ScriptedBackend>(&control_, 4, All));
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ReadSchedulerTest, ARefusedRegistrationIsAWarning) {
  Start(2, DirectMode::kOff, All);
  std::vector<std::byte> buffer(kBlock);
  const std::vector<std::span<std::byte>> buffers = {buffer};
  reader_->RegisterBuffers(buffers);
  EXPECT_EQ(reader_->registered_buffer_bytes(), 0u);
  EXPECT_THAT(reader_->warnings(), ElementsAre("no buffers here"));
}

}  // namespace
}  // namespace coldstream
