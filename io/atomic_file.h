// A file that appears under its name only when it is whole.
//
// Bytes go to a temporary file in the same folder; Commit syncs and renames it,
// so that a reader sees the old file or the new one and never part of one. On
// any error, and when the object ends without Commit, the temporary file is
// removed.
//
//   ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path, total_bytes));
//   RETURN_IF_ERROR(file->Append(bytes));
//   RETURN_IF_ERROR(file->Commit());
//
// Where the size is not known in advance, std::nullopt in its place.
//
// Written pages are pushed to the disk and dropped as the file grows: a model
// larger than memory does not push everything else out of the page cache.
// Errors: ResourceExhausted for a full disk, quota or size limit, with the
// bytes needed or, size unknown, those written; NotFound (the folder),
// PermissionDenied, InvalidArgument (the name belongs to something that is no
// regular file), Unavailable (a write failed). After an error every call
// returns it again. Thread-safety: one caller at a time.
#ifndef COLDSTREAM_IO_ATOMIC_FILE_H_
#define COLDSTREAM_IO_ATOMIC_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace coldstream {

class AtomicFile {
 public:
  // Takes the disk space at once where the file system can, so that a disk too
  // small is known before work starts. `total_bytes` is the size to come.
  static StatusOr<std::unique_ptr<AtomicFile>> Create(
      const std::string& path, std::optional<uint64_t> total_bytes);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  Status Append(std::span<const std::byte> bytes);
  uint64_t written() const { return written_; }

  // The file has its name when this returns OK, and survives a power cut.
  Status Commit();

 private:
  AtomicFile(std::string path, std::optional<uint64_t> total_bytes)
      : path_(std::move(path)), total_bytes_(total_bytes) {}

  Status CheckTarget() const;
  Status OpenTemporary();
  Status Reserve();
  Status Fail(const char* what, int error);
  void PushToDisk();
  void Discard();

  const std::string path_;
  const std::optional<uint64_t> total_bytes_;
  std::string temporary_path_;
  uint64_t free_at_start_ = 0;  // bytes of disk space
  int fd_ = -1;
  uint64_t written_ = 0;
  uint64_t pushed_ = 0;   // bytes whose writing to the disk was begun
  uint64_t dropped_ = 0;  // bytes known to be on the disk, and not cached
  Status status_;         // the first error
};

}  // namespace coldstream

#endif  // COLDSTREAM_IO_ATOMIC_FILE_H_
