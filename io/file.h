// One file of a checkpoint, open for direct and for buffered reads.
//
// The file is read, never mapped, so a file that shrinks under us is an error
// and not a SIGBUS. Its identity (device, inode, size, mtime) is taken at Open;
// CheckUnchanged compares.
#ifndef COLDSTREAM_IO_FILE_H_
#define COLDSTREAM_IO_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace coldstream {

// What O_DIRECT asks of a read of this file. Powers of two, in bytes.
struct DirectAlignment {
  uint32_t memory = 4096;
  uint32_t offset = 4096;  // of file offset and length
};

enum class DirectMode {
  kAuto,  // direct where the file system does it, buffered with one warning
  kOn,    // direct, or Open fails
  kOff,   // through the page cache
};

// Finds what O_DIRECT asks of reads of the file behind `direct_fd`, or says in
// the Status why it cannot be used. The default is ProbeDirectAlignment
// (io/direct_alignment.h); tests put in an alignment or a refusal.
using DirectProbe =
    std::function<StatusOr<DirectAlignment>(int direct_fd, uint64_t size)>;

class File {
 public:
  // Opens for reading. Errors: NotFound, PermissionDenied, InvalidArgument (a
  // directory, a pipe), Unavailable (direct wanted and refused).
  static StatusOr<std::shared_ptr<File>> Open(const std::string& path,
                                              DirectMode direct,
                                              const DirectProbe& probe = {});
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // The descriptor to use for weight reads: O_DIRECT if direct(), else
  // buffered.
  int fd() const { return direct_fd_ >= 0 ? direct_fd_ : buffered_fd_; }
  int buffered_fd() const { return buffered_fd_; }
  bool direct() const { return direct_fd_ >= 0; }
  const DirectAlignment& alignment() const { return alignment_; }
  // What windows of this file are rounded to in the file and in memory: what
  // it asks for, and whole pages in any case.
  uint32_t window_alignment() const;
  // Why direct() is false although it was wanted, file system named; empty
  // otherwise.
  const std::string& direct_refusal() const { return direct_refusal_; }

  // Reads exactly out.size() bytes at `offset` through the page cache: for
  // headers. Errors: DataLoss when the file ends before.
  Status ReadExactly(uint64_t offset, std::span<std::byte> out) const;

  // FailedPrecondition, naming what differs, if the path now names another
  // file or the file's size or mtime changed since Open.
  Status CheckUnchanged() const;

 private:
  File() = default;
  Status OpenDirect(const DirectProbe& probe);

  std::string path_;
  std::string absolute_path_;  // for CheckUnchanged after a chdir
  uint64_t size_ = 0;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  int64_t mtime_ns_ = 0;
  int buffered_fd_ = -1;
  int direct_fd_ = -1;
  DirectAlignment alignment_;
  std::string direct_refusal_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_IO_FILE_H_
