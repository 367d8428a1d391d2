#include "tools/line_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/small_disk.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class LineFileTest : public ::testing::Test {
 protected:
  TempDir dir_;
  const std::string path_ = dir_.Path("out");
};

TEST_F(LineFileTest, LinesAreAppendedToWhatIsThere) {
  dir_.Write("out", "old\n");
  const auto file = *LineFile::Open(path_);
  EXPECT_TRUE(file->regular());
  EXPECT_EQ(file->size(), 4u);
  EXPECT_THAT(file->Append("new\n"), IsOk());
  EXPECT_THAT(file->Sync(), IsOk());
  EXPECT_EQ(file->size(), 8u);
  EXPECT_EQ(Contents(path_), "old\nnew\n");
}

TEST_F(LineFileTest, TruncateCutsAndLinesGoOnFromThere) {
  dir_.Write("out", "old\ntorn");
  const auto file = *LineFile::Open(path_);
  EXPECT_THAT(file->Truncate(4), IsOk());
  EXPECT_THAT(file->Append("new\n"), IsOk());
  EXPECT_EQ(Contents(path_), "old\nnew\n");
}

TEST_F(LineFileTest, OneProcessAtATimeHasItOpen) {
  auto file = *LineFile::Open(path_);
  EXPECT_THAT(LineFile::Open(path_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(path_), HasSubstr("another process"))));
  file.reset();
  EXPECT_THAT(LineFile::Open(path_), IsOk());
}

TEST_F(LineFileTest, WhatCannotBeOpenedIsNamed) {
  EXPECT_THAT(LineFile::Open(dir_.Path("none/out")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/out")));
  EXPECT_THAT(
      LineFile::Open(dir_.path()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(dir_.path())));
}

TEST_F(LineFileTest, OnAFullDiskTheTornLineIsCutOffAgain) {
  const SmallDiskResult result = RunOnSmallDisk(dir_.path(), 64 << 10, [&] {
    const auto file = *LineFile::Open(path_);
    const std::string line = std::string(9999, 'x') + "\n";
    Status status;
    int written = -1;
    for (; status.ok(); ++written) status = file->Append(line);
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr(path_), HasSubstr("No space left"))));
    EXPECT_EQ(Contents(path_).size(), 10000u * static_cast<size_t>(written));
    EXPECT_GE(written, 5);
    // The error stays, also where there would be room for a shorter line.
    EXPECT_THAT(file->Append("x\n"),
                StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_THAT(file->Sync(), StatusIs(absl::StatusCode::kResourceExhausted));
    return !::testing::Test::HasFailure();
  });
  if (result == SmallDiskResult::kNotPossible)
    GTEST_SKIP() << "this system lets us mount no file system";
  EXPECT_EQ(result, SmallDiskResult::kHeld);
}

// In a child, which a limit or a signal could kill.
template <typename Body>
int ExitCodeOfChild(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    const bool held = body();
    (void)std::fflush(nullptr);
    _exit(held && !::testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(LineFileTest, ASizeLimitIsAnErrorAndNotADeadlySignal) {
  EXPECT_EQ(ExitCodeOfChild([&] {
              const rlimit limit = {25, 25};
              setrlimit(RLIMIT_FSIZE, &limit);
              const auto file = *LineFile::Open(path_);
              EXPECT_THAT(file->Append("123456789\n"), IsOk());
              EXPECT_THAT(file->Append("123456789\n"), IsOk());
              EXPECT_THAT(file->Append("123456789\n"),
                          StatusIs(absl::StatusCode::kResourceExhausted,
                                   HasSubstr("File too large")));
              return true;
            }),
            0);
  EXPECT_EQ(Contents(path_), "123456789\n123456789\n");
}

TEST_F(LineFileTest, AClosedPipeIsAnErrorAndNotADeadlySignal) {
  EXPECT_EQ(ExitCodeOfChild([&] {
              int ends[2];
              if (pipe(ends) != 0) return false;
              const auto file = LineFile::OverDescriptor(ends[1], "the pipe");
              EXPECT_THAT(file->Append("a\n"), IsOk());
              EXPECT_THAT(file->Sync(), IsOk());
              close(ends[0]);
              EXPECT_THAT(
                  file->Append("b\n"),
                  StatusIs(absl::StatusCode::kAborted, HasSubstr("the pipe")));
              // Not left pending for later, either.
              sigset_t pending;
              sigpending(&pending);
              return sigismember(&pending, SIGPIPE) == 0;
            }),
            0);
}

TEST_F(LineFileTest, AFullPipeIsWaitedForAndTheWholeLineArrives) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string line = std::string(1 << 20, 'x') + "\n";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const auto file = LineFile::OverDescriptor(ends[1], "the pipe");
    _exit(file->Append(line).ok() ? 0 : 1);
  }
  close(ends[1]);
  std::string got;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;)
    got.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(got, line);
}

TEST_F(LineFileTest, ADeviceIsNoFileAndNotLocked) {
  const auto file = *LineFile::Open("/dev/null");
  EXPECT_FALSE(file->regular());
  EXPECT_EQ(file->size(), 0u);
  EXPECT_THAT(LineFile::Open("/dev/null"), IsOk());
  EXPECT_THAT(file->Append("a\n"), IsOk());
  EXPECT_THAT(file->Sync(), IsOk());
}

}  // namespace
}  // namespace coldstream
