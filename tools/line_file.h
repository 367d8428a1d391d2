// A file that lines are appended to, whole or not at all.
//
// A line is one write(2); what a full disk or a limit leaves of it is cut off
// again, so that the file ends with a line end whatever happens to the process:
// but for what a kill in the middle of a write, or a power cut, leaves behind,
// which whoever opens it next finds behind the last line end.
// Into a pipe or terminal lines go the same way; there nothing can be cut off
// or synced. The process survives a closed pipe and a file size limit whatever
// it does about SIGPIPE and SIGXFSZ.
// Errors: ResourceExhausted (disk full, quota, size limit), Aborted (the pipe's
// reader is gone), PermissionDenied, NotFound (the folder), FailedPrecondition
// (another process writes it), InvalidArgument (a folder), Unavailable (any
// other failure); with path and reason.
// Thread-safety: none; one thread at a time.
#ifndef COLDSTREAM_TOOLS_LINE_FILE_H_
#define COLDSTREAM_TOOLS_LINE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "tools/line_sink.h"

namespace coldstream {

class LineFile : public LineSink {
 public:
  // Creates the file, or opens it as it is. A regular file is locked: no other
  // process can open it this way meanwhile. Where the file system has no locks
  // it is opened without.
  static StatusOr<std::unique_ptr<LineFile>> Open(const std::string& path);
  // Writes to `fd`, which must outlive it. `name` is for messages.
  static std::unique_ptr<LineFile> OverDescriptor(int fd, std::string name);
  ~LineFile() override;
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  Status Append(std::string_view line) override;
  Status Sync() override;
  // Cuts the file to `size` bytes, which must not be more than it has.
  Status Truncate(uint64_t size);

  const std::string& path() const { return path_; }
  bool regular() const { return regular_; }
  uint64_t size() const { return size_; }  // bytes; 0 of what is no file

 private:
  LineFile(std::string path, int fd, bool owned)
      : path_(std::move(path)), fd_(fd), owned_(owned) {}

  Status Inspect();
  Status Lock() const;
  Status ErrorOf(const char* what, int error) const;

  const std::string path_;
  const int fd_;
  const bool owned_;
  bool regular_ = false;
  uint64_t size_ = 0;
  Status status_;  // the first error
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_LINE_FILE_H_
