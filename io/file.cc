#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_format.h"
#include "base/host_memory.h"
#include "io/direct_alignment.h"

namespace coldstream {
namespace {

int64_t ModifiedNs(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

Status OpenError(const std::string& path, int error) {
  const std::string message =
      absl::StrFormat("%s: %s", path, std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(message);
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
      return absl::InvalidArgumentError(message);
    default:
      return absl::UnknownError(message);
  }
}

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

StatusOr<std::shared_ptr<File>> File::Open(const std::string& path,
                                           DirectMode direct,
                                           const DirectProbe& probe) {
  std::shared_ptr<File> file(new File());
  file->path_ = path;
  std::error_code no_working_directory;
  file->absolute_path_ =
      std::filesystem::absolute(path, no_working_directory).string();
  if (no_working_directory) file->absolute_path_ = path;

  // O_NONBLOCK so that a pipe without a writer does not hang us. It goes again:
  // io_uring would answer EAGAIN for a regular file that has it.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return OpenError(path, errno);
  file->buffered_fd_ = fd;
  struct stat info = {};
  if (fstat(fd, &info) != 0) return OpenError(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: is %s, expected a regular file", path, KindOf(info.st_mode)));
  }
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
    return OpenError(path, errno);

  file->size_ = static_cast<uint64_t>(info.st_size);
  file->device_ = info.st_dev;
  file->inode_ = info.st_ino;
  file->mtime_ns_ = ModifiedNs(info);

  if (direct == DirectMode::kOff) return file;
  const Status opened = file->OpenDirect(probe);
  if (opened.ok()) return file;
  if (!absl::IsUnavailable(opened)) return opened;
  if (file->direct_fd_ >= 0) close(file->direct_fd_);
  file->direct_fd_ = -1;
  file->alignment_ = DirectAlignment{};
  if (direct == DirectMode::kOn) {
    return absl::UnavailableError(
        absl::StrFormat("%s: direct I/O refused by %s (use --direct auto)",
                        path, MessageOf(opened)));
  }
  file->direct_refusal_ = MessageOf(opened);
  return file;
}

// Unavailable, with the file system's name and its reason, if direct reads do
// not work; direct_fd_ may then still be open.
Status File::OpenDirect(const DirectProbe& probe) {
  direct_fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (direct_fd_ < 0) {
    return absl::UnavailableError(
        absl::StrFormat("%s: opening with O_DIRECT: %s",
                        FileSystemName(buffered_fd_), std::strerror(errno)));
  }
  struct stat info = {};
  if (fstat(direct_fd_, &info) != 0) return OpenError(path_, errno);
  if (info.st_dev != device_ || info.st_ino != inode_) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: replaced while it was opened", path_));
  }
  StatusOr<DirectAlignment> alignment =
      probe ? probe(direct_fd_, size_)
            : ProbeDirectAlignment(direct_fd_, size_);
  if (!alignment.ok()) {
    if (!absl::IsUnavailable(alignment.status())) return alignment.status();
    return absl::UnavailableError(absl::StrFormat(
        "%s: %s", FileSystemName(buffered_fd_), MessageOf(alignment.status())));
  }
  alignment_ = *alignment;
  return absl::OkStatus();
}

File::~File() {
  if (direct_fd_ >= 0) close(direct_fd_);
  if (buffered_fd_ >= 0) close(buffered_fd_);
}

uint32_t File::window_alignment() const {
  return std::max({uint32_t{kPageBytes}, alignment_.offset, alignment_.memory});
}

Status File::ReadExactly(uint64_t offset, std::span<std::byte> out) const {
  // The kernel moves at most 0x7ffff000 bytes a call anyway.
  constexpr size_t kMostPerCall = size_t{1} << 30;
  if (offset > size_ || out.size() > size_ - offset) {
    return absl::DataLossError(absl::StrFormat(
        "%s: file ends too early: %d bytes wanted at offset %d, file has %d",
        path_, out.size(), offset, size_));
  }
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = pread(buffered_fd_, out.data() + done,
                              std::min(out.size() - done, kMostPerCall),
                              static_cast<off_t>(offset + done));
    if (got < 0) {
      if (errno == EINTR) continue;
      return absl::InternalError(absl::StrFormat(
          "%s: reading %d bytes at offset %d: %s", path_, out.size() - done,
          offset + done, std::strerror(errno)));
    }
    if (got == 0) {
      return absl::DataLossError(absl::StrFormat(
          "%s: file was cut while in use: it ends at offset %d, had %d bytes",
          path_, offset + done, size_));
    }
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

Status File::CheckUnchanged() const {
  const auto changed = [this](const std::string& what) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: model file changed while in use: %s; open it again", path_, what));
  };
  struct stat info = {};
  if (stat(absolute_path_.c_str(), &info) != 0)
    return changed(std::strerror(errno));
  if (info.st_dev != device_ || info.st_ino != inode_)
    return changed("the name now belongs to another file");
  if (static_cast<uint64_t>(info.st_size) != size_)
    return changed(absl::StrFormat("%d bytes, had %d", info.st_size, size_));
  if (ModifiedNs(info) != mtime_ns_) return changed("it was written to");
  return absl::OkStatus();
}

}  // namespace coldstream
