#include "tools/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

constexpr size_t kChunkBytes = size_t{256} << 10;

}  // namespace

StatusOr<std::unique_ptr<LineReader>> LineReader::Open(
    const std::string& path, const LineReaderOptions& options) {
  std::unique_ptr<LineReader> reader(new LineReader(path, options));
  RETURN_IF_ERROR(reader->OpenFile());
  return reader;
}

LineReader::~LineReader() {
  if (fd_ > STDIN_FILENO) close(fd_);
}

Status LineReader::OpenFile() {
  fd_ = path_ == "-" ? STDIN_FILENO : open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) return ErrorOf("opening", errno);
  struct stat info = {};
  if (fstat(fd_, &info) != 0) return ErrorOf("looking at it", errno);
  if (S_ISDIR(info.st_mode)) return ErrorOf("opening", EISDIR);
  if (S_ISREG(info.st_mode)) size_ = static_cast<uint64_t>(info.st_size);
  buffer_.resize(kChunkBytes);
  return absl::OkStatus();
}

StatusOr<bool> LineReader::Fill() {
  begin_ = end_ = 0;
  while (true) {
    const ssize_t got = read(fd_, buffer_.data(), buffer_.size());
    if (got >= 0) {
      end_ = static_cast<size_t>(got);
      return got > 0;
    }
    if (errno != EINTR) return ErrorOf("reading", errno);
    if (options_.cancel != nullptr && options_.cancel->load())
      return absl::CancelledError(path_ + ": interrupted");
  }
}

StatusOr<bool> LineReader::Next(Line* line) {
  line_.clear();
  uint64_t bytes = 0;
  bool ended = false;
  bool return_last = false;  // the last byte of the line so far is \r
  while (!ended) {
    if (begin_ == end_) {
      ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more) break;
    }
    const char* from = buffer_.data() + begin_;
    const void* found = std::memchr(from, '\n', end_ - begin_);
    ended = found != nullptr;
    const size_t length =
        ended ? static_cast<size_t>(static_cast<const char*>(found) - from)
              : end_ - begin_;
    if (length > 0) return_last = from[length - 1] == '\r';
    // One more than the limit, for a \r that will go.
    line_.append(from,
                 std::min(length, options_.most_bytes + 1 - line_.size()));
    bytes += length;
    begin_ += length + (ended ? 1 : 0);
  }
  if (bytes == 0 && !ended) return false;
  line->offset = offset_;
  offset_ += bytes + (ended ? 1 : 0);
  if (return_last) {
    if (line_.size() == bytes) line_.pop_back();
    --bytes;
  }
  if (line_.size() > options_.most_bytes) line_.resize(options_.most_bytes);
  line->text = line_;
  line->number = ++number_;
  line->bytes = bytes;
  line->terminated = ended;
  return true;
}

Status LineReader::ErrorOf(const char* what, int error) const {
  const std::string message =
      absl::StrFormat("%s: %s: %s", path_, what, std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case EISDIR:
      return absl::InvalidArgumentError(message);
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace coldstream
