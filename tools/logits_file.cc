#include "tools/logits_file.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace coldstream {

static_assert(std::endian::native == std::endian::little,
              "floats are written as they lie in memory");

StatusOr<LogitsFile> LogitsFile::Create(const std::string& path) {
  LogitsFile logits;
  logits.path_ = path;
  logits.temporary_ = absl::StrFormat("%s.%d.tmp", path, getpid());
  logits.file_ = std::fopen(logits.temporary_.c_str(), "wb");
  if (logits.file_ == nullptr)
    return absl::PermissionDeniedError(absl::StrFormat(
        "%s: cannot create the file: %s", path, std::strerror(errno)));
  return logits;
}

LogitsFile::LogitsFile(LogitsFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      file_(std::exchange(other.file_, nullptr)) {}

LogitsFile::~LogitsFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  unlink(temporary_.c_str());
}

Status LogitsFile::WriteError(const char* what) const {
  const std::string message =
      absl::StrFormat("%s: %s: %s", path_, what, std::strerror(errno));
  return errno == ENOSPC ? absl::ResourceExhaustedError(message)
                         : absl::InternalError(message);
}

Status LogitsFile::Append(std::span<const float> row) {
  if (std::fwrite(row.data(), sizeof(float), row.size(), file_) != row.size())
    return WriteError("cannot write the logits");
  return absl::OkStatus();
}

Status LogitsFile::Commit() {
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0)
    return WriteError("cannot write the logits");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    return WriteError("cannot rename the finished file");
  std::fclose(std::exchange(file_, nullptr));
  return absl::OkStatus();
}

}  // namespace coldstream
