// What every reader must do, over {uring, pread} x {direct, buffered} x {clean,
// faulty}: faults that a kernel may show must not change a byte.
#include "io/reader.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "base/host_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/pattern_file.h"
#include "tests/support/recording_completion.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBlock = 4096;

uint64_t RoundUp(uint64_t value) {
  return (value + kBlock - 1) / kBlock * kBlock;
}

HostMemory Memory(uint64_t bytes) {
  auto memory = HostMemory::Allocate(bytes, "a test");
  CHECK(memory.ok());
  return *std::move(memory);
}

enum class Faults { kClean, kFaulty };
using Param = std::tuple<IoBackendKind, DirectMode, Faults>;

class ReaderTest : public ::testing::TestWithParam<Param> {
 protected:
  ReaderOptions Options(int depth, uint64_t chunk_bytes) const {
    ReaderOptions options;
    options.backend = std::get<0>(GetParam());
    options.depth = depth;
    options.chunk_bytes = chunk_bytes;
    if (std::get<2>(GetParam()) == Faults::kFaulty) {
      options.wrap_backend = [](std::unique_ptr<ReadBackend> inner) {
        return std::make_unique<FaultyBackend>(std::move(inner),
                                               FaultTable::Harmless(7));
      };
    }
    return options;
  }

  std::unique_ptr<Reader> Make(const std::vector<const PatternFile*>& files,
                               const ReaderOptions& options) const {
    std::vector<std::shared_ptr<File>> opened;
    for (const PatternFile* file : files) {
      opened.push_back(file->Open(std::get<1>(GetParam())));
    }
    auto reader = Reader::Create(std::move(opened), options);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }
};

std::string NameOf(const ::testing::TestParamInfo<Param>& suite) {
  const auto [backend, direct, faults] = suite.param;
  std::string name = backend == IoBackendKind::kUring ? "Uring" : "Pread";
  name += direct == DirectMode::kAuto ? "Direct" : "Buffered";
  name += faults == Faults::kClean ? "Clean" : "Faulty";
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    AllReaders, ReaderTest,
    ::testing::Combine(::testing::Values(IoBackendKind::kUring,
                                         IoBackendKind::kPread),
                       ::testing::Values(DirectMode::kAuto, DirectMode::kOff),
                       ::testing::Values(Faults::kClean, Faults::kFaulty)),
    NameOf);

TEST_P(ReaderTest, EveryByteOfManyRandomWindowsArrives) {
  const PatternFile one(3 * 1024 * kBlock);
  const PatternFile two(700 * kBlock + 123);
  auto reader = Make({&one, &two}, Options(6, 16 * kBlock));
  std::mt19937_64 random(3);
  struct Read {
    std::vector<ReadWindow> windows;
    HostMemory memory;
    RecordingCompletion done;
  };
  std::vector<std::unique_ptr<Read>> reads;
  for (int i = 0; i < 60; ++i) {
    auto read = std::make_unique<Read>();
    uint64_t room = 0;
    for (uint64_t count = 1 + random() % 4; count > 0; --count) {
      const int file = static_cast<int>(random() % 2);
      const uint64_t size = file == 0 ? one.size() : two.size();
      const uint64_t offset = random() % (size / kBlock) * kBlock;
      const uint64_t length =
          std::min(size - offset, (1 + random() % 100) * kBlock);
      read->windows.push_back({file, offset, length, nullptr});
      room += RoundUp(length);
    }
    read->memory = Memory(room);
    std::byte* at = read->memory.data();
    for (ReadWindow& window : read->windows) {
      window.destination = at;
      at += RoundUp(window.length);
    }
    reader->Submit(read->windows,
                   i % 5 == 0 ? ReadPriority::kUrgent : ReadPriority::kNormal,
                   &read->done);
    reads.push_back(std::move(read));
  }
  uint64_t wanted = 0;
  for (const auto& read : reads) {
    ASSERT_TRUE(read->done.Wait().ok()) << read->done.Wait();
    for (const ReadWindow& w : read->windows) {
      ASSERT_EQ(
          PatternFile::FirstDifference(w.offset, {w.destination, w.length}),
          w.offset + w.length);
      wanted += w.length;
    }
  }
  EXPECT_GE(reader->stats().bytes, wanted);
  EXPECT_GT(reader->stats().reads, 60u);
  EXPECT_GT(reader->stats().busy_seconds, 0.0);
  if (std::get<2>(GetParam()) == Faults::kClean) {
    EXPECT_EQ(reader->stats().bytes, wanted);
  } else {
    EXPECT_GT(reader->stats().retries, 0u);
  }
  for (const auto& read : reads) EXPECT_EQ(read->done.calls(), 1);
}

TEST_P(ReaderTest, ReadsAnUnalignedEndOfFileExactly) {
  for (const uint64_t whole : {uint64_t{0}, 5 * kBlock}) {
    for (const uint64_t odd : {1, 511, 513, 4095, 4097}) {
      const PatternFile file(whole + odd);
      auto reader = Make({&file}, Options(3, 2 * kBlock));
      const HostMemory memory = Memory(RoundUp(file.size()));
      const ReadWindow window{0, 0, file.size(), memory.data()};
      const Status status =
          ReadAndWait(*reader, {&window, 1}, ReadPriority::kNormal);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(
          PatternFile::FirstDifference(0, memory.bytes().first(file.size())),
          file.size());
    }
  }
}

TEST_P(ReaderTest, DepthOneCarriesHundredsOfRequests) {
  const PatternFile file(300 * kBlock);
  auto reader = Make({&file}, Options(1, kBlock));
  const HostMemory memory = Memory(file.size());
  std::vector<RecordingCompletion> done(300);
  for (uint64_t i = 0; i < done.size(); ++i) {
    const ReadWindow window{0, i * kBlock, kBlock, memory.data() + i * kBlock};
    reader->Submit({&window, 1}, ReadPriority::kNormal, &done[i]);
  }
  for (RecordingCompletion& d : done) ASSERT_TRUE(d.Wait().ok());
  EXPECT_EQ(PatternFile::FirstDifference(0, memory.bytes()), file.size());
}

TEST_P(ReaderTest, RequestsWithNothingToReadComplete) {
  const PatternFile file(kBlock);
  auto reader = Make({&file}, Options(2, kBlock));
  EXPECT_TRUE(ReadAndWait(*reader, {}, ReadPriority::kNormal).ok());
  const ReadWindow empty{0, 0, 0, nullptr};
  EXPECT_TRUE(ReadAndWait(*reader, {&empty, 1}, ReadPriority::kUrgent).ok());
}

TEST_P(ReaderTest, SeveralThreadsMaySubmit) {
  const PatternFile file(256 * kBlock);
  auto reader = Make({&file}, Options(4, 4 * kBlock));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const HostMemory memory = Memory(16 * kBlock);
      for (uint64_t i = 0; i < 40; ++i) {
        const uint64_t offset = (t * 40 + i) * kBlock;
        const ReadWindow window{0, offset, 16 * kBlock, memory.data()};
        if (!ReadAndWait(*reader, {&window, 1}, ReadPriority::kNormal).ok() ||
            PatternFile::FirstDifference(offset, memory.bytes()) !=
                offset + window.length) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Submits the next read from within OnRead, as the stream graph does.
class Chain final : public ReadCompletion {
 public:
  Chain(Reader* reader, std::byte* memory, uint64_t blocks)
      : reader_(reader), memory_(memory), blocks_(blocks) {}

  void Next() {
    const ReadWindow window{0, at_ * kBlock, kBlock, memory_ + at_ * kBlock};
    reader_->Submit({&window, 1}, ReadPriority::kNormal, this);
  }
  void OnRead(Status status) override {
    if (!status.ok() || ++at_ == blocks_) {
      end_.OnRead(status);
    } else {
      Next();
    }
  }
  Status Wait() { return end_.Wait(); }

 private:
  Reader* reader_;
  std::byte* memory_;
  uint64_t blocks_;
  uint64_t at_ = 0;
  RecordingCompletion end_;
};

TEST_P(ReaderTest, OnReadMaySubmit) {
  const PatternFile file(50 * kBlock);
  auto reader = Make({&file}, Options(2, kBlock));
  const HostMemory memory = Memory(file.size());
  Chain chain(reader.get(), memory.data(), 50);
  chain.Next();
  ASSERT_TRUE(chain.Wait().ok());
  EXPECT_EQ(PatternFile::FirstDifference(0, memory.bytes()), file.size());
}

TEST_P(ReaderTest, DestructionDrainsAndTellsEveryRequestOnce) {
  const PatternFile file(64 * kBlock);
  for (int round = 0; round < 20; ++round) {
    std::vector<RecordingCompletion> done(30);
    HostMemory memory = Memory(30 * 16 * kBlock);
    auto reader = Make({&file}, Options(1 + round % 5, 2 * kBlock));
    for (uint64_t i = 0; i < done.size(); ++i) {
      const ReadWindow window{0, i * kBlock, 16 * kBlock,
                              memory.data() + i * 16 * kBlock};
      reader->Submit({&window, 1}, ReadPriority::kNormal, &done[i]);
    }
    if (round % 2 == 1) (void)done[0].Wait();
    reader.reset();
    for (uint64_t i = 0; i < done.size(); ++i) {
      ASSERT_EQ(done[i].calls(), 1);
      const Status status = done[i].Wait();
      if (!status.ok()) {
        EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
        continue;
      }
      EXPECT_EQ(
          PatternFile::FirstDifference(
              i * kBlock, memory.bytes().subspan(i * 16 * kBlock, 16 * kBlock)),
          (i + 16) * kBlock);
    }
  }
}

TEST_P(ReaderTest, AFileThatShrankIsDataLoss) {
  for (const uint64_t left : {4 * kBlock, 4 * kBlock + 100}) {
    const PatternFile file(32 * kBlock);
    auto reader = Make({&file}, Options(2, 8 * kBlock));
    file.Truncate(left);
    const HostMemory memory = Memory(file.size());
    const ReadWindow window{0, 0, file.size(), memory.data()};
    const Status status =
        ReadAndWait(*reader, {&window, 1}, ReadPriority::kNormal);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(MessageOf(status), HasSubstr(file.path()));
    EXPECT_THAT(MessageOf(status), HasSubstr("expected"));
  }
}

TEST_P(ReaderTest, RegisteredBuffersHoldTheSameBytes) {
  const PatternFile file(128 * kBlock);
  auto reader = Make({&file}, Options(4, 8 * kBlock));
  const HostMemory a = Memory(64 * kBlock);
  const HostMemory b = Memory(64 * kBlock);
  const HostMemory c = Memory(64 * kBlock);
  const std::vector<std::span<std::byte>> buffers = {b.bytes(), a.bytes()};
  reader->RegisterBuffers(buffers);
  const bool uring = std::get<0>(GetParam()) == IoBackendKind::kUring;
  EXPECT_EQ(reader->registered_buffer_bytes() > 0, uring);
  uint64_t offset = 0;
  for (const HostMemory* memory : {&a, &b, &c}) {  // c is not registered
    const ReadWindow window{0, offset, memory->size(), memory->data()};
    ASSERT_TRUE(ReadAndWait(*reader, {&window, 1}, ReadPriority::kNormal).ok());
    EXPECT_EQ(PatternFile::FirstDifference(offset, memory->bytes()),
              offset + memory->size());
    offset += 32 * kBlock;
  }
  // A second call replaces the first.
  const std::vector<std::span<std::byte>> fewer = {c.bytes()};
  reader->RegisterBuffers(fewer);
  EXPECT_EQ(reader->registered_buffer_bytes(), uring ? c.size() : 0);
  const ReadWindow window{0, 0, a.size(), a.data()};
  ASSERT_TRUE(ReadAndWait(*reader, {&window, 1}, ReadPriority::kNormal).ok());
  EXPECT_EQ(PatternFile::FirstDifference(0, a.bytes()), a.size());
}

TEST_P(ReaderTest, BuffersMayBeRegisteredWhileReadsAreInFlight) {
  const PatternFile file(128 * kBlock);
  auto reader = Make({&file}, Options(2, kBlock));
  const HostMemory memory = Memory(file.size());
  const HostMemory other = Memory(8 * kBlock);
  RecordingCompletion done;
  const ReadWindow window{0, 0, file.size(), memory.data()};
  reader->Submit({&window, 1}, ReadPriority::kNormal, &done);
  const std::vector<std::span<std::byte>> buffers = {other.bytes()};
  reader->RegisterBuffers(buffers);
  ASSERT_TRUE(done.Wait().ok());
  EXPECT_EQ(PatternFile::FirstDifference(0, memory.bytes()), file.size());
}

TEST_P(ReaderTest, ReadsTheEndOfASparseFileBeyondFourGiB) {
  constexpr uint64_t kFiveGiB = uint64_t{5} << 30;
  const PatternFile file = PatternFile::Sparse(kFiveGiB + 1024, kBlock + 1024);
  auto reader = Make({&file}, Options(2, uint64_t{1} << 20));
  const HostMemory memory = Memory(3 * kBlock);
  const uint64_t offset = kFiveGiB - kBlock;
  const ReadWindow window{0, offset, kBlock + 1024, memory.data()};
  ASSERT_TRUE(ReadAndWait(*reader, {&window, 1}, ReadPriority::kNormal).ok());
  EXPECT_EQ(
      PatternFile::FirstDifference(offset, memory.bytes().first(window.length)),
      file.size());
}

TEST_P(ReaderTest, AFileInMemoryIsReadToo) {
  // tmpfs takes O_DIRECT with any alignment, or, in older kernels, not at all.
  if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm";
  const PatternFile file(20 * kBlock + 77, "/dev/shm/");
  auto reader = Make({&file}, Options(3, 4 * kBlock));
  const HostMemory memory = Memory(RoundUp(file.size()));
  const ReadWindow window{0, 0, file.size(), memory.data()};
  const Status status =
      ReadAndWait(*reader, {&window, 1}, ReadPriority::kNormal);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(PatternFile::FirstDifference(0, memory.bytes().first(file.size())),
            file.size());
}

TEST_P(ReaderTest, WindowsOutsideTheFilesAreRefused) {
  const PatternFile file(2 * kBlock);
  auto reader = Make({&file}, Options(2, kBlock));
  const HostMemory memory = Memory(4 * kBlock);
  const ReadWindow wrong[] = {
      {1, 0, kBlock, memory.data()},
      {-1, 0, kBlock, memory.data()},
      {0, 0, 3 * kBlock, memory.data()},
      {0, 3 * kBlock, kBlock, memory.data()},
      {0, kBlock, ~uint64_t{0}, memory.data()},
  };
  for (const ReadWindow& window : wrong) {
    const Status status =
        ReadAndWait(*reader, {&window, 1}, ReadPriority::kNormal);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
  EXPECT_EQ(reader->stats().reads, 0u);
}

TEST(ReaderCreateTest, OptionsOutOfRangeAreRefused) {
  const PatternFile file(kBlock);
  const auto code = [&](int depth, uint64_t chunk_bytes, int threads) {
    ReaderOptions options;
    options.depth = depth;
    options.chunk_bytes = chunk_bytes;
    options.pread_threads = threads;
    return Reader::Create({file.Open(DirectMode::kOff)}, options)
        .status()
        .code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(0, 1 << 20, 0), kInvalid);
  EXPECT_EQ(code(4097, 1 << 20, 0), kInvalid);
  EXPECT_EQ(code(16, 0, 0), kInvalid);
  EXPECT_EQ(code(16, 4097, 0), kInvalid);
  EXPECT_EQ(code(16, uint64_t{2} << 30, 0), kInvalid);
  EXPECT_EQ(code(16, 1 << 20, -1), kInvalid);
  EXPECT_EQ(code(4096, uint64_t{1} << 30, 0), absl::StatusCode::kOk);
  EXPECT_EQ(code(1, 4096, 3), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace coldstream
