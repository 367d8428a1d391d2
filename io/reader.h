// Brings bytes from files into host memory, many at a time.
//
// A request is what one weight unit needs: a few windows of files and where
// they go. The reader cuts it into chunks, keeps up to `depth` chunks in
// flight, first come first served, and reports the request once, when all its
// bytes are there or the first error is known and nothing of it is in flight
// any more. A partly filled buffer is never reported as read.
//
// Policy (chunks, short reads, retries, order; io/read_scheduler.h) is apart
// from mechanism (io/read_backend.h: uring, pread; tests add a faulty one).
//
// Lifetime: request memory and the completion must live until OnRead. The
// destructor drains: it fails what was not begun with Cancelled and waits for
// what is in flight.
// Thread-safety: Submit may be called from any thread. OnRead is called from
// the reader's own thread and must not block for long.
#ifndef COLDSTREAM_IO_READER_H_
#define COLDSTREAM_IO_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/file.h"

namespace coldstream {

class ReadBackend;

// Offset, length and destination are multiples of the file's DirectAlignment,
// except that a window may end at the end of the file (length then ends exactly
// there, and the destination has room up to the next multiple).
struct ReadWindow {
  int file = 0;  // index into the reader's files
  uint64_t offset = 0;
  uint64_t length = 0;
  std::byte* destination = nullptr;
};

class ReadCompletion {
 public:
  virtual ~ReadCompletion() = default;
  // The first byte is being asked for: before OnRead, on the same thread, once;
  // not called for a request that ends before that.
  virtual void OnIssue() {}
  // Errors: DataLoss (the file ended early), Internal (the device said no;
  // file, offset, length and errno in the message), InvalidArgument (a window
  // that is not aligned), Cancelled.
  virtual void OnRead(Status status) = 0;
};

enum class ReadPriority {
  kNormal,
  kUrgent,  // goes before every normal chunk not yet issued (embedding rows)
};

enum class IoBackendKind { kAuto, kUring, kPread };

inline constexpr int kMaxIoDepth = 4096;
inline constexpr uint64_t kMinIoChunkBytes = 4096;
inline constexpr uint64_t kMaxIoChunkBytes = uint64_t{1} << 30;

struct ReaderOptions {
  IoBackendKind backend = IoBackendKind::kAuto;
  int depth = 16;  // chunks in flight, 1..kMaxIoDepth
  // A multiple of kMinIoChunkBytes, up to kMaxIoChunkBytes.
  uint64_t chunk_bytes = uint64_t{1} << 20;
  int pread_threads = 0;  // 0: min(depth, 16)

  // For tests: puts something between the policy and the backend, for example
  // tests/support/faulty_backend.h, or replaces the backend altogether.
  std::function<std::unique_ptr<ReadBackend>(std::unique_ptr<ReadBackend>)>
      wrap_backend = {};
};

struct ReaderStats {
  uint64_t bytes = 0;       // bytes the kernel delivered, re-reads included
  uint64_t reads = 0;       // system-level reads completed
  uint64_t retries = 0;     // short reads and EAGAIN/EINTR continued
  double busy_seconds = 0;  // time with at least one read in flight
};

class Reader {
 public:
  // Starts the backend: with kAuto io_uring is tried first, and where it is
  // refused the pread pool takes over and warnings() says why, once. An
  // explicit kUring fails instead (Unavailable: EPERM seccomp or sysctl; ENOSYS
  // or EINVAL kernel too old). InvalidArgument: option out of range.
  static StatusOr<std::unique_ptr<Reader>> Create(
      const std::vector<std::shared_ptr<File>>& files,
      const ReaderOptions& options);
  virtual ~Reader() = default;

  virtual void Submit(std::span<const ReadWindow> windows,
                      ReadPriority priority, ReadCompletion* completion) = 0;

  // Ends every request submitted so far with Cancelled, as soon as nothing of
  // it is in flight; one whose last chunks are already in flight may still
  // succeed. Returns without waiting. Any thread.
  virtual void CancelQueued() = 0;

  // Tells the backend of memory that reads will go to (slots), so that it may
  // register it; it must then outlive the reader, or a later call that leaves
  // it out. Best effort: the effect is in registered_buffer_bytes(), a refusal
  // in warnings(). Waits until nothing is in flight; not from OnRead.
  virtual void RegisterBuffers(
      std::span<const std::span<std::byte>> buffers) = 0;
  virtual uint64_t registered_buffer_bytes() const = 0;

  virtual const char* backend_name() const = 0;  // "uring" or "pread"
  virtual ReaderStats stats() const = 0;
  // Whether this file is read with O_DIRECT now: false also after the file
  // system accepted the flag at open and then refused the reads.
  virtual bool direct(int file) const = 0;
  // One line each; empty if all went as asked.
  virtual std::vector<std::string> warnings() const = 0;
};

// Submits and waits. For callers without a completion of their own.
Status ReadAndWait(Reader& reader, std::span<const ReadWindow> windows,
                   ReadPriority priority);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_READER_H_
