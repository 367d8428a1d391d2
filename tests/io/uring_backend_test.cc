// io_uring where it is refused in part or in whole, and on older kernels.
#include "io/uring_backend.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/byte_units.h"
#include "base/host_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/reader.h"
#include "tests/support/pattern_file.h"
#include "tests/support/restricted_thread.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kBlock = 4096;
constexpr int kSetup = 425;
constexpr int kEnter = 426;
constexpr int kRegister = 427;

class UringRefusedTest : public ::testing::Test {
 protected:
  StatusOr<std::unique_ptr<Reader>> Create(IoBackendKind kind) const {
    ReaderOptions options;
    options.backend = kind;
    options.chunk_bytes = 4 * kBlock;
    return Reader::Create({pattern_.Open(DirectMode::kAuto)}, options);
  }

  void ExpectReads(Reader& reader) const {
    const auto memory = HostMemory::Allocate(pattern_.size(), "a test");
    ASSERT_TRUE(memory.ok());
    const ReadWindow window{0, 0, pattern_.size(), memory->data()};
    ASSERT_TRUE(ReadAndWait(reader, {&window, 1}, ReadPriority::kNormal).ok());
    EXPECT_EQ(PatternFile::FirstDifference(0, memory->bytes()),
              pattern_.size());
  }

  const PatternFile pattern_{64 * kBlock};
};

TEST_F(UringRefusedTest, ARefusedRingFallsBackToPreadWithOneWarning) {
  for (const int syscall : {kSetup, kEnter}) {
    for (const int error : {EPERM, ENOSYS}) {
      RunWithSyscallsRefused({syscall}, error, [&] {
        auto reader = Create(IoBackendKind::kAuto);
        ASSERT_TRUE(reader.ok()) << reader.status();
        EXPECT_STREQ((*reader)->backend_name(), "pread");
        const std::vector<std::string> warnings = (*reader)->warnings();
        ASSERT_EQ(warnings.size(), 1u);
        EXPECT_THAT(warnings[0],
                    AllOf(HasSubstr("io_uring"), HasSubstr("seccomp"),
                          HasSubstr(std::strerror(error))));
        ExpectReads(**reader);
      });
    }
  }
}

TEST_F(UringRefusedTest, ARefusedRingThatWasAskedForIsUnavailable) {
  for (const int error : {EPERM, ENOSYS}) {
    RunWithSyscallsRefused({kSetup, kEnter, kRegister}, error, [&] {
      const auto reader = Create(IoBackendKind::kUring);
      EXPECT_EQ(reader.status().code(), absl::StatusCode::kUnavailable);
      EXPECT_THAT(MessageOf(reader.status()), HasSubstr(std::strerror(error)));
    });
  }
}

TEST_F(UringRefusedTest, WithoutRegistrationTheRingStillReads) {
  RunWithSyscallsRefused({kRegister}, EPERM, [&] {
    auto reader = Create(IoBackendKind::kUring);
    ASSERT_TRUE(reader.ok()) << reader.status();
    std::vector<std::byte> memory(4 * kBlock);
    const std::vector<std::span<std::byte>> buffers = {memory};
    (*reader)->RegisterBuffers(buffers);
    EXPECT_EQ((*reader)->registered_buffer_bytes(), 0u);
    EXPECT_EQ((*reader)->warnings().size(), 1u);
    ExpectReads(**reader);
  });
}

TEST_F(UringRefusedTest, AMemlockLimitLeavesBuffersUnregisteredWithOneWarning) {
  const auto file = pattern_.Open(DirectMode::kAuto);  // as root
  const bool ran = RunAsNobodyWithMemlock(65536, [&] {
    ReaderOptions options;
    options.backend = IoBackendKind::kUring;
    const auto reader = Reader::Create({file}, options);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const auto memory = HostMemory::Allocate(4 << 20, "a test");
    ASSERT_TRUE(memory.ok());
    const std::vector<std::span<std::byte>> buffers = {memory->bytes()};
    (*reader)->RegisterBuffers(buffers);
    EXPECT_EQ((*reader)->registered_buffer_bytes(), 0u);
    const std::vector<std::string> warnings = (*reader)->warnings();
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_THAT(warnings[0],
                AllOf(HasSubstr("4194304 bytes"), HasSubstr("limit 65536")));
    ExpectReads(**reader);
  });
  if (!ran) GTEST_SKIP() << "only root can take the identity of nobody";
}

TEST(UringBackendTest, FlagsThatTheKernelLacksAreDropped) {
  const PatternFile pattern(4 * kBlock);
  constexpr uint32_t kUndefined = 1u << 30;
  constexpr uint32_t kCoop = 1u << 8;
  constexpr uint32_t kSingle = 1u << 12;
  constexpr uint32_t kDefer = 1u << 13;
  for (const uint32_t flags :
       {kUndefined, kUndefined | kCoop | kSingle | kDefer, kSingle | kCoop,
        kDefer /* not without kSingle */, kCoop, 0u}) {
    ReaderOptions options;
    const auto file = pattern.Open(DirectMode::kAuto);
    options.wrap_backend = [&](std::unique_ptr<ReadBackend>) {
      return MakeUringBackend({file}, 4, flags);
    };
    options.backend = IoBackendKind::kUring;
    options.depth = 4;
    const auto reader = Reader::Create({file}, options);
    ASSERT_TRUE(reader.ok()) << flags << reader.status();
    const auto memory = HostMemory::Allocate(pattern.size(), "a test");
    ASSERT_TRUE(memory.ok());
    const ReadWindow window{0, 0, pattern.size(), memory->data()};
    ASSERT_TRUE(
        ReadAndWait(**reader, {&window, 1}, ReadPriority::kNormal).ok());
    EXPECT_EQ(PatternFile::FirstDifference(0, memory->bytes()), pattern.size());
  }
}

TEST(UringBackendTest, AWakeEndsAWaitWithNothingInFlight) {
  const PatternFile pattern(kBlock);
  const auto backend = MakeUringBackend({pattern.Open(DirectMode::kOff)}, 1);
  ASSERT_TRUE(backend->Start().ok());
  std::vector<RawResult> results;
  backend->Wake();  // before
  ASSERT_TRUE(backend->Wait(&results).ok());
  for (int i = 0; i < 100; ++i) {
    std::thread waker([&] { backend->Wake(); });
    ASSERT_TRUE(backend->Wait(&results).ok());
    waker.join();
  }
  EXPECT_TRUE(results.empty());
}

TEST(CutForRegistrationTest, PiecesAreAtMostOneGiBInOrderOfAddress) {
  const auto at = [](uint64_t address, uint64_t bytes) {
    return std::span<std::byte>(reinterpret_cast<std::byte*>(address), bytes);
  };
  const std::vector<std::span<std::byte>> buffers = {
      at(64 * kGiB, 2 * kGiB + kBlock), at(kGiB, kBlock), at(9 * kGiB, 0)};
  const std::vector<RegisteredPiece> pieces = CutForRegistration(buffers);
  ASSERT_EQ(pieces.size(), 4u);
  const uint64_t begin[] = {kGiB, 64 * kGiB, 65 * kGiB, 66 * kGiB};
  const uint64_t length[] = {kBlock, kGiB, kGiB, kBlock};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(reinterpret_cast<uint64_t>(pieces[i].begin), begin[i]);
    EXPECT_EQ(pieces[i].length, length[i]);
  }
}

}  // namespace
}  // namespace coldstream
