#include "io/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/host_memory.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

size_t OpenDescriptors() {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    (void)entry;
    ++count;
  }
  return count;
}

std::string ReadText(const File& file, uint64_t offset, size_t length) {
  std::string text(length, '?');
  const Status status =
      file.ReadExactly(offset, std::as_writable_bytes(std::span(text)));
  return status.ok() ? text : MessageOf(status);
}

TEST(FileTest, ReadsExactlyWhatIsAskedFor) {
  const TempDir dir;
  auto file = File::Open(dir.Write("f", "0123456789"), DirectMode::kAuto);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ((*file)->size(), 10u);
  EXPECT_EQ(ReadText(**file, 0, 10), "0123456789");
  EXPECT_EQ(ReadText(**file, 7, 3), "789");
  EXPECT_EQ(ReadText(**file, 10, 0), "");
}

TEST(FileTest, FailsOnReadsPastTheEnd) {
  const TempDir dir;
  auto file = File::Open(dir.Write("f", "0123456789"), DirectMode::kOff);
  ASSERT_THAT(file, IsOk());
  std::vector<std::byte> bytes(4);
  EXPECT_THAT((*file)->ReadExactly(7, bytes),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("4 bytes wanted at offset 7"),
                             HasSubstr("file has 10"))));
  EXPECT_THAT((*file)->ReadExactly(~uint64_t{0}, bytes),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(FileTest, FailsWhenTheFileWasCutAfterOpen) {
  const TempDir dir;
  const std::string path = dir.Write("f", std::string(10000, 'x'));
  auto file = File::Open(path, DirectMode::kOff);
  ASSERT_THAT(file, IsOk());
  fs::resize_file(path, 5000);
  std::vector<std::byte> bytes(10000);
  EXPECT_THAT((*file)->ReadExactly(0, bytes),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("ends at offset 5000, had 10000")));
}

TEST(FileTest, ReadsPast4GiB) {
  const TempDir dir;
  const std::string path = dir.Write("f", "");
  constexpr uint64_t kSize = (uint64_t{5} << 30) + 3;
  const int fd = open(path.c_str(), O_WRONLY);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(pwrite(fd, "end", 3, static_cast<off_t>(kSize - 3)), 3);
  close(fd);
  auto file = File::Open(path, DirectMode::kAuto);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ((*file)->size(), kSize);
  EXPECT_EQ(ReadText(**file, kSize - 3, 3), "end");
}

TEST(FileTest, NamesWhatCannotBeOpened) {
  const TempDir dir;
  EXPECT_THAT(
      File::Open(dir.Path("none"), DirectMode::kAuto),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir.Path("none"))));
  EXPECT_THAT(
      File::Open(dir.path(), DirectMode::kAuto),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a folder")));
  EXPECT_THAT(
      File::Open("/dev/null", DirectMode::kAuto),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a device")));
  ASSERT_EQ(mkfifo(dir.Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(
      File::Open(dir.Path("pipe"), DirectMode::kAuto),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a pipe")));
  fs::create_symlink("loop", dir.Path("loop"));
  EXPECT_THAT(File::Open(dir.Path("loop"), DirectMode::kAuto),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(File::Open("", DirectMode::kAuto),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(FileTest, SaysWhenItIsNotAllowedToRead) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TempDir dir;
  const std::string path = dir.Write("f", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_THAT(File::Open(path, DirectMode::kAuto),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(path)));
}

TEST(FileTest, GivesDescriptorsFitForIoUring) {
  const TempDir dir;
  auto file = File::Open(dir.Write("f", "x"), DirectMode::kAuto);
  ASSERT_THAT(file, IsOk());
  for (const int fd : {(*file)->fd(), (*file)->buffered_fd()}) {
    EXPECT_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ((fcntl((*file)->fd(), F_GETFL) & O_DIRECT) != 0, (*file)->direct());
  EXPECT_EQ(fcntl((*file)->buffered_fd(), F_GETFL) & O_DIRECT, 0);
}

TEST(FileTest, ReadsDirectlyAtTheAlignmentItReports) {
  const TempDir dir;
  const std::string path = dir.Write("f", std::string(300'000, 'x'));
  auto file = File::Open(path, DirectMode::kAuto);
  ASSERT_THAT(file, IsOk());
  if (!(*file)->direct()) {
    EXPECT_FALSE((*file)->direct_refusal().empty());
    GTEST_SKIP() << "no direct I/O here: " << (*file)->direct_refusal();
  }
  EXPECT_THAT((*file)->direct_refusal(), IsEmpty());
  const DirectAlignment& alignment = (*file)->alignment();
  auto memory = HostMemory::Allocate(4 * 65536, "test");
  ASSERT_THAT(memory, IsOk());
  std::byte* to = memory->data() + alignment.memory;
  EXPECT_EQ(pread((*file)->fd(), to, alignment.offset, alignment.offset),
            static_cast<ssize_t>(alignment.offset));
  EXPECT_THAT(std::span(to, alignment.offset), Each(std::byte{'x'}));
}

TEST(FileTest, TakesTheAlignmentThatTheProbeFinds) {
  const TempDir dir;
  const std::string path = dir.Write("f", std::string(100, 'x'));
  if (!(*File::Open(path, DirectMode::kAuto))->direct())
    GTEST_SKIP() << "O_DIRECT is refused at open here";
  for (const uint32_t bytes : {512u, 4096u, 65536u}) {
    auto file =
        File::Open(path, DirectMode::kOn,
                   [&](int, uint64_t size) -> StatusOr<DirectAlignment> {
                     EXPECT_EQ(size, 100u);
                     return DirectAlignment{512, bytes};
                   });
    ASSERT_THAT(file, IsOk());
    EXPECT_TRUE((*file)->direct());
    EXPECT_EQ((*file)->alignment().offset, bytes);
    EXPECT_EQ((*file)->alignment().memory, 512u);
  }
}

TEST(FileTest, FallsBackToBufferedAndSaysWhyWhenTheFirstDirectReadFails) {
  const TempDir dir;
  const std::string path = dir.Write("f", "text");
  const DirectProbe refuse = [](int, uint64_t) -> StatusOr<DirectAlignment> {
    return absl::UnavailableError("reading with O_DIRECT: Invalid argument");
  };
  const size_t before = OpenDescriptors();
  {
    auto file = File::Open(path, DirectMode::kAuto, refuse);
    ASSERT_THAT(file, IsOk());
    EXPECT_FALSE((*file)->direct());
    EXPECT_EQ((*file)->fd(), (*file)->buffered_fd());
    EXPECT_THAT((*file)->direct_refusal(), HasSubstr("Invalid argument"));
    EXPECT_EQ(ReadText(**file, 0, 4), "text");
    EXPECT_EQ(OpenDescriptors(), before + 1);
  }
  EXPECT_THAT(File::Open(path, DirectMode::kOn, refuse),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(path), HasSubstr("Invalid argument"))));
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(FileTest, DoesNotTryDirectReadsWhenToldNotTo) {
  const TempDir dir;
  auto file = File::Open(dir.Write("f", "text"), DirectMode::kOff,
                         [](int, uint64_t) -> StatusOr<DirectAlignment> {
                           ADD_FAILURE() << "probed";
                           return DirectAlignment{};
                         });
  ASSERT_THAT(file, IsOk());
  EXPECT_FALSE((*file)->direct());
  EXPECT_THAT((*file)->direct_refusal(), IsEmpty());
}

TEST(FileTest, NoticesEveryKindOfChange) {
  const auto changed = [](const char* what) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(what));
  };
  const TempDir dir;
  const std::string path = dir.Write("f", "0123456789");
  auto file = File::Open(path, DirectMode::kOff);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT((*file)->CheckUnchanged(), IsOk());

  const auto time = fs::last_write_time(path);
  fs::last_write_time(path, time + std::chrono::nanoseconds(1000));
  EXPECT_THAT((*file)->CheckUnchanged(), changed("written to"));
  fs::last_write_time(path, time);
  EXPECT_THAT((*file)->CheckUnchanged(), IsOk());

  fs::resize_file(path, 5);
  EXPECT_THAT((*file)->CheckUnchanged(), changed("5 bytes, had 10"));

  fs::rename(dir.Write("g", "0123456789"), path);
  EXPECT_THAT((*file)->CheckUnchanged(), changed("another file"));

  fs::remove(path);
  EXPECT_THAT((*file)->CheckUnchanged(), changed("No such file"));
}

TEST(FileTest, StillKnowsARelativeNameAfterAChangeOfFolder) {
  const TempDir dir;
  dir.Write("f", "text");
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  auto file = File::Open("f", DirectMode::kOff);
  fs::current_path(before);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ((*file)->path(), "f");
  EXPECT_THAT((*file)->CheckUnchanged(), IsOk());
}

TEST(FileTest, WorksOnAFileSystemInMemory) {
  if (!fs::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  std::string path = "/dev/shm/coldstream-XXXXXX";
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  ASSERT_EQ(write(fd, "text", 4), 4);
  close(fd);
  // Kernels differ: O_DIRECT is refused at open, or anything goes.
  auto file = File::Open(path, DirectMode::kAuto);
  unlink(path.c_str());
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(ReadText(**file, 0, 4), "text");
  if (!(*file)->direct()) {
    EXPECT_THAT((*file)->direct_refusal(), HasSubstr("tmpfs"));
  }
}

}  // namespace
}  // namespace coldstream
