// The mechanism under a Reader: single reads, issued and reaped by one thread.
//
// A backend knows nothing of requests, chunks or retries; it reports what the
// kernel said. That keeps one policy for every backend and lets tests put
// FaultyBackend between the two.
#ifndef COLDSTREAM_IO_READ_BACKEND_H_
#define COLDSTREAM_IO_READ_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace coldstream {

struct RawRead {
  uint64_t tag = 0;  // comes back in RawResult
  int file = 0;      // index of the registered files
  uint64_t offset = 0;
  uint32_t length = 0;
  std::byte* destination = nullptr;
  bool buffered = false;  // through File::buffered_fd(), not File::fd()
};

struct RawResult {
  uint64_t tag = 0;
  int32_t result = 0;  // bytes read, 0 at the end of the file, or -errno
};

// Thread-safety: every method but Wake is called from one thread, the owner;
// Start comes first there. Construction and destruction may be elsewhere.
class ReadBackend {
 public:
  virtual ~ReadBackend() = default;  // nothing may be in flight

  // Acquires what is bound to the owner's thread and proves that the mechanism
  // works by using it. Error: Unavailable, with the reason.
  virtual Status Start() = 0;

  // Reads that may be in flight at once.
  virtual int capacity() const = 0;

  // Takes one read; the caller keeps count and never passes capacity().
  virtual void Push(const RawRead& read) = 0;

  // Hands over what was pushed and waits until at least one result is there or
  // Wake was called; appends all results at hand. Error: the backend is broken.
  virtual Status Wait(std::vector<RawResult>* results) = 0;

  // Makes a Wait, current or next, return. Any thread.
  virtual void Wake() = 0;

  // See Reader::RegisterBuffers; called with nothing in flight, replaces what
  // an earlier call registered. Returns the bytes registered, 0 where the
  // mechanism has no such thing. Error: refused, with the reason; nothing is
  // registered.
  virtual StatusOr<uint64_t> RegisterBuffers(
      std::span<const std::span<std::byte>> buffers) = 0;

  virtual const char* name() const = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_IO_READ_BACKEND_H_
