#include "tools/line_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

// Keeps SIGPIPE and SIGXFSZ, which a write of this thread may raise, from
// having any effect: they are blocked and, if they came, taken away. Blocked
// ones that were pending before stay.
class QuietWrites {
 public:
  QuietWrites() {
    sigemptyset(&signals_);
    sigset_t pending;
    sigpending(&pending);
    for (const int signal : {SIGPIPE, SIGXFSZ}) {
      if (sigismember(&pending, signal) == 0) sigaddset(&signals_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~QuietWrites() {
    const int error = errno;
    const timespec no_time = {};
    while (sigtimedwait(&signals_, nullptr, &no_time) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  QuietWrites(const QuietWrites&) = delete;
  QuietWrites& operator=(const QuietWrites&) = delete;

 private:
  sigset_t signals_;
  sigset_t before_;
};

}  // namespace

StatusOr<std::unique_ptr<LineFile>> LineFile::Open(const std::string& path) {
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const int error = errno;
  std::unique_ptr<LineFile> file(new LineFile(path, fd, /*owned=*/true));
  if (fd < 0) return file->ErrorOf("opening", error);
  RETURN_IF_ERROR(file->Inspect());
  if (file->regular_) RETURN_IF_ERROR(file->Lock());
  // Between opening and locking another process may have written.
  RETURN_IF_ERROR(file->Inspect());
  return file;
}

std::unique_ptr<LineFile> LineFile::OverDescriptor(int fd, std::string name) {
  return std::unique_ptr<LineFile>(
      new LineFile(std::move(name), fd, /*owned=*/false));
}

LineFile::~LineFile() {
  if (owned_ && fd_ >= 0) close(fd_);
}

Status LineFile::Inspect() {
  struct stat info = {};
  if (fstat(fd_, &info) != 0) return ErrorOf("looking at it", errno);
  regular_ = S_ISREG(info.st_mode);
  size_ = regular_ ? static_cast<uint64_t>(info.st_size) : 0;
  return absl::OkStatus();
}

Status LineFile::Lock() const {
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: another process is writing it; wait for its end or choose another "
      "name",
      path_));
}

Status LineFile::Append(std::string_view line) {
  RETURN_IF_ERROR(status_);
  const QuietWrites quiet;
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t done = write(fd_, rest.data(), rest.size());
    if (done >= 0) {
      rest.remove_prefix(static_cast<size_t>(done));
      continue;
    }
    if (errno == EINTR) continue;
    status_ = ErrorOf("writing", errno);
    // If this fails too, the torn line is found by whoever opens the file next.
    if (regular_) (void)ftruncate(fd_, static_cast<off_t>(size_));
    return status_;
  }
  if (regular_) size_ += line.size();
  return absl::OkStatus();
}

Status LineFile::Sync() {
  RETURN_IF_ERROR(status_);
  if (!regular_) return absl::OkStatus();
  int result = 0;
  do {
    result = fdatasync(fd_);
  } while (result != 0 && errno == EINTR);
  // What a failed sync has lost is not known: it must not be tried again.
  if (result != 0) status_ = ErrorOf("writing to the disk", errno);
  return status_;
}

Status LineFile::Truncate(uint64_t size) {
  RETURN_IF_ERROR(status_);
  if (ftruncate(fd_, static_cast<off_t>(size)) != 0)
    return status_ = ErrorOf("cutting off what follows the last line", errno);
  size_ = size;
  return absl::OkStatus();
}

Status LineFile::ErrorOf(const char* what, int error) const {
  const std::string message =
      absl::StrFormat("%s: %s: %s", path_, what, std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(
          message + "; whole lines are kept: make room and run it again");
    case EPIPE:
      return absl::AbortedError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EISDIR:
      return absl::InvalidArgumentError(message);
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace coldstream
