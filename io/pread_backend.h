// Reads with pread(2) on a pool of threads: for where io_uring is refused, and
// for comparison.
//
// The threads only read and queue what the kernel said. The pool is woken once
// a batch, and the owner only when its list of results stops being empty.
// Thread-safety: as ReadBackend.
#ifndef COLDSTREAM_IO_PREAD_BACKEND_H_
#define COLDSTREAM_IO_PREAD_BACKEND_H_

#include <memory>
#include <vector>

#include "io/file.h"
#include "io/read_backend.h"

namespace coldstream {

// min(depth, 16): more threads than that no longer raised the rate.
int DefaultPreadThreads(int depth);

// `depth` reads in flight at most, `threads` of them in the kernel.
std::unique_ptr<ReadBackend> MakePreadBackend(
    std::vector<std::shared_ptr<File>> files, int depth, int threads);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_PREAD_BACKEND_H_
