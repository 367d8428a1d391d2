// Reads with io_uring: one ring, owned by one thread.
//
// Files are registered where the kernel lets us, buffers where the memlock
// limit does; a read outside every registered buffer is an ordinary read, so
// nothing but speed depends on either. Wake is an eventfd that the ring polls.
//
// Invariant: at most capacity() reads and one poll are in the ring, which is
// large enough for them, so neither queue can overflow.
// Errors: Start is Unavailable with the cause (seccomp or sysctl, kernel too
// old, memlock limit).
// Source: io_uring_setup(2), io_uring_register(2), io_uring_enter(2).
#ifndef COLDSTREAM_IO_URING_BACKEND_H_
#define COLDSTREAM_IO_URING_BACKEND_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "io/file.h"
#include "io/read_backend.h"

namespace coldstream {

// `first_flags` are the setup flags tried first, instead of the best that we
// know of; what the kernel refuses with EINVAL is tried with fewer. For tests.
std::unique_ptr<ReadBackend> MakeUringBackend(
    std::vector<std::shared_ptr<File>> files, int depth,
    std::optional<uint32_t> first_flags = std::nullopt);

// A registration is one table of buffers of at most 1 GiB each.
struct RegisteredPiece {
  std::byte* begin = nullptr;
  uint64_t length = 0;
};

// The buffers cut into such pieces, by address. Empty ones are dropped.
std::vector<RegisteredPiece> CutForRegistration(
    std::span<const std::span<std::byte>> buffers);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_URING_BACKEND_H_
