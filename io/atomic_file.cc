#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

constexpr uint64_t kPushBytes = uint64_t{16} << 20;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool IsOutOfSpace(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

}  // namespace

StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(
    const std::string& path, std::optional<uint64_t> total_bytes) {
  std::unique_ptr<AtomicFile> file(new AtomicFile(path, total_bytes));
  RETURN_IF_ERROR(file->CheckTarget());
  RETURN_IF_ERROR(file->OpenTemporary());
  RETURN_IF_ERROR(file->Reserve());
  return file;
}

AtomicFile::~AtomicFile() { Discard(); }

void AtomicFile::Discard() {
  if (fd_ < 0) return;
  close(fd_);
  fd_ = -1;
  (void)unlink(temporary_path_.c_str());
}

// The first error: says what was needed if space ran out, and leaves nothing.
Status AtomicFile::Fail(const char* what, int error) {
  const std::string folder = FolderOf(path_);
  if (IsOutOfSpace(error)) {
    status_ = absl::ResourceExhaustedError(absl::StrFormat(
        "%s: %s: %s: %d bytes %s, %d were free in %s; free some space or "
        "choose another folder",
        path_, what, std::strerror(error), total_bytes_.value_or(written_),
        total_bytes_ ? "needed" : "written", free_at_start_, folder));
  } else {
    const std::string message =
        absl::StrFormat("%s: %s: %s", path_, what, std::strerror(error));
    const bool denied = error == EACCES || error == EPERM || error == EROFS;
    const bool absent = error == ENOENT || error == ENOTDIR;
    status_ = denied   ? absl::PermissionDeniedError(message)
              : absent ? absl::NotFoundError(message)
                       : absl::UnavailableError(message);
  }
  Discard();
  return status_;
}

// Renaming over a device or a pipe would replace it; over a folder would fail,
// but only at the end.
Status AtomicFile::CheckTarget() const {
  struct stat info = {};
  if (stat(path_.c_str(), &info) != 0 || S_ISREG(info.st_mode))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: is %s, expected a file or a new name", path_,
      S_ISDIR(info.st_mode) ? "a folder" : "not a regular file"));
}

Status AtomicFile::OpenTemporary() {
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_path_ =
        absl::StrFormat("%s.%d-%d.partial", path_, getpid(), attempt);
    fd_ = open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
               0666);
    if (fd_ >= 0) return absl::OkStatus();
    if (errno != EEXIST) break;
  }
  return Fail("creating a temporary file beside it", errno);
}

Status AtomicFile::Reserve() {
  struct statvfs space = {};
  const bool known = fstatvfs(fd_, &space) == 0;
  if (known) free_at_start_ = uint64_t{space.f_bavail} * space.f_frsize;
  if (total_bytes_.value_or(0) == 0) return absl::OkStatus();
  int result = 0;
  do {
    // Keeps the size at what is written: a cut file is shorter, not
    // zero-filled.
    result = fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0,
                       static_cast<off_t>(*total_bytes_));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return absl::OkStatus();
  // Where space cannot be taken at once, what is free now is a good hint.
  const bool too_little = known && free_at_start_ < *total_bytes_;
  if (IsOutOfSpace(errno) || too_little)
    return Fail("taking disk space", IsOutOfSpace(errno) ? errno : ENOSPC);
  return absl::OkStatus();
}

Status AtomicFile::Append(std::span<const std::byte> bytes) {
  RETURN_IF_ERROR(status_);
  while (!bytes.empty()) {
    const ssize_t done = write(fd_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return Fail("writing", errno);
    bytes = bytes.subspan(static_cast<size_t>(done));
    written_ += static_cast<uint64_t>(done);
    PushToDisk();
  }
  return absl::OkStatus();
}

// Begins writing what is new, and waits for the stretch before it, so that at
// most two stretches are dirty. Failures here are found by fsync.
void AtomicFile::PushToDisk() {
  if (written_ - pushed_ < kPushBytes) return;
  const auto range = [&](uint64_t from, uint64_t to, unsigned flags) {
    (void)sync_file_range(fd_, static_cast<off_t>(from),
                          static_cast<off_t>(to - from), flags);
  };
  range(pushed_, written_, SYNC_FILE_RANGE_WRITE);
  if (pushed_ > dropped_) {
    range(dropped_, pushed_,
          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
              SYNC_FILE_RANGE_WAIT_AFTER);
    (void)posix_fadvise(fd_, static_cast<off_t>(dropped_),
                        static_cast<off_t>(pushed_ - dropped_),
                        POSIX_FADV_DONTNEED);
    dropped_ = pushed_;
  }
  pushed_ = written_;
}

Status AtomicFile::Commit() {
  RETURN_IF_ERROR(status_);
  if (fsync(fd_) != 0) return Fail("writing to the disk", errno);
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0)
    return Fail("renaming the finished file", errno);
  close(fd_);
  fd_ = -1;
  status_ = absl::FailedPreconditionError(path_ + ": already finished");
  // The name must survive a power cut too; some file systems cannot sync a
  // folder, which is no reason to fail.
  const int folder =
      open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)fsync(folder);
    close(folder);
  }
  return absl::OkStatus();
}

}  // namespace coldstream
