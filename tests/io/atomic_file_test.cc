#include "io/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/small_disk.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  return names;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Status WriteWhole(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path, text.size()));
  RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
  return file->Commit();
}

TEST(AtomicFileTest, HasItsNameOnlyAfterCommit) {
  const TempDir dir;
  const std::string path = dir.Path("model.gguf");
  auto file = AtomicFile::Create(path, 5);
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT((*file)->Append(std::as_bytes(std::span("hello", 5))), IsOk());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_THAT((*file)->Commit(), IsOk());
  EXPECT_EQ(Contents(path), "hello");
  EXPECT_THAT(NamesIn(dir.path()), ElementsAre("model.gguf"));
  EXPECT_THAT((*file)->Commit(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(AtomicFileTest, LeavesTheOldFileAndNothingElseWithoutCommit) {
  const TempDir dir;
  const std::string path = dir.Write("model.gguf", "old");
  {
    auto file = AtomicFile::Create(path, 5);
    ASSERT_THAT(file, IsOk());
    ASSERT_THAT((*file)->Append(std::as_bytes(std::span("hello", 5))), IsOk());
    EXPECT_EQ(NamesIn(dir.path()).size(), 2u);
  }
  EXPECT_EQ(Contents(path), "old");
  EXPECT_THAT(NamesIn(dir.path()), ElementsAre("model.gguf"));
}

TEST(AtomicFileTest, ReplacesAnOldFileWhole) {
  const TempDir dir;
  const std::string path = dir.Write("model.gguf", "old and longer");
  ASSERT_THAT(WriteWhole(path, "new"), IsOk());
  EXPECT_EQ(Contents(path), "new");
}

TEST(AtomicFileTest, IgnoresALeftOverTemporaryFileOfACrash) {
  const TempDir dir;
  const std::string path = dir.Path("model.gguf");
  dir.Write("model.gguf." + std::to_string(getpid()) + "-0.partial", "stale");
  ASSERT_THAT(WriteWhole(path, "new"), IsOk());
  EXPECT_EQ(Contents(path), "new");
}

TEST(AtomicFileTest, WritesFilesLargerThanWhatItKeepsDirty) {
  const TempDir dir;
  const std::string path = dir.Path("large");
  std::string text(size_t{50} << 20, '\0');
  for (size_t i = 0; i < text.size(); i += 97)
    text[i] = static_cast<char>(i / 97);
  ASSERT_THAT(WriteWhole(path, text), IsOk());
  EXPECT_TRUE(Contents(path) == text);
}

TEST(AtomicFileTest, MakesFilesThatOthersMayRead) {
  const TempDir dir;
  const std::string path = dir.Path("model.gguf");
  const mode_t mask = umask(022);
  ASSERT_THAT(WriteWhole(path, "x"), IsOk());
  umask(mask);
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0644u);
}

TEST(AtomicFileTest, NamesAFolderThatIsMissing) {
  const TempDir dir;
  EXPECT_THAT(AtomicFile::Create(dir.Path("none/model.gguf"), 5),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/model")));
}

TEST(AtomicFileTest, RefusesTheNameOfAFolderOrADevice) {
  const TempDir dir;
  EXPECT_THAT(
      AtomicFile::Create(dir.path(), 5),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a folder")));
  EXPECT_THAT(AtomicFile::Create("/dev/null", 5),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a regular file")));
}

TEST(AtomicFileTest, SaysWhatWasNeededWhenTheDiskIsTooSmall) {
  const TempDir dir;
  const auto body = [&] {
    const Status status =
        AtomicFile::Create(dir.Path("big"), uint64_t{1} << 20).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 AllOf(HasSubstr("1048576 bytes needed"),
                                       HasSubstr("65536 were free"),
                                       HasSubstr("big"))));
    EXPECT_THAT(NamesIn(dir.path()), IsEmpty());
    return !::testing::Test::HasFailure();
  };
  const SmallDiskResult result = RunOnSmallDisk(dir.path(), 64 << 10, body);
  if (result == SmallDiskResult::kNotPossible)
    GTEST_SKIP() << "cannot mount a small disk here";
  EXPECT_EQ(result, SmallDiskResult::kHeld);
}

TEST(AtomicFileTest, RemovesThePartWrittenWhenTheDiskFillsUp) {
  const TempDir dir;
  const auto body = [&] {
    // The size announced is a lie, so the space is not taken at the start.
    auto file = AtomicFile::Create(dir.Path("big"), 4096);
    EXPECT_THAT(file, IsOk());
    const std::vector<std::byte> bytes(1 << 20);
    const Status status = (*file)->Append(bytes);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_THAT(NamesIn(dir.path()), IsEmpty());
    EXPECT_EQ((*file)->Append(bytes), status);
    EXPECT_EQ((*file)->Commit(), status);
    return !::testing::Test::HasFailure();
  };
  const SmallDiskResult result = RunOnSmallDisk(dir.path(), 64 << 10, body);
  if (result == SmallDiskResult::kNotPossible)
    GTEST_SKIP() << "cannot mount a small disk here";
  EXPECT_EQ(result, SmallDiskResult::kHeld);
}

TEST(AtomicFileTest, SaysWhatWasWrittenWhereTheSizeWasNotKnown) {
  const TempDir dir;
  const auto body = [&] {
    auto file = AtomicFile::Create(dir.Path("big"), std::nullopt);
    EXPECT_THAT(file, IsOk());
    const std::vector<std::byte> bytes(1 << 20);
    EXPECT_THAT((*file)->Append(bytes),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("65536 bytes written, 65536 were free")));
    EXPECT_THAT(NamesIn(dir.path()), IsEmpty());
    return !::testing::Test::HasFailure();
  };
  const SmallDiskResult result = RunOnSmallDisk(dir.path(), 64 << 10, body);
  if (result == SmallDiskResult::kNotPossible)
    GTEST_SKIP() << "cannot mount a small disk here";
  EXPECT_EQ(result, SmallDiskResult::kHeld);
}

TEST(AtomicFileTest, RemovesThePartWrittenAtTheFileSizeLimit) {
  const TempDir dir;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{65536, 65536};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    const Status status =
        WriteWhole(dir.Path("big"), std::string(1 << 20, 'x'));
    _exit(absl::IsResourceExhausted(status) &&
                  MessageOf(status).find("1048576 bytes needed") !=
                      std::string::npos
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_THAT(NamesIn(dir.path()), IsEmpty());
}

}  // namespace
}  // namespace coldstream
