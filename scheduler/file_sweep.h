// Streams a stretch of a file through a ring of slots, each refilled as soon as
// it is full: what the engine does with units whose computation takes no time.
// For measuring what a disk and a reader can do.
//
//   RETURN_IF_ERROR(SweepFile(reader.get(), {0, begin, end}, memory, 8 << 20));
//
// Errors: the reader's, the first of them. Nothing is in flight on return.
// Thread-safety: other requests may share the reader.
#ifndef COLDSTREAM_SCHEDULER_FILE_SWEEP_H_
#define COLDSTREAM_SCHEDULER_FILE_SWEEP_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "io/reader.h"

namespace coldstream {

// Bytes [begin, end) of the reader's file `file`; begin aligned as a
// ReadWindow's offset, end aligned or the end of the file.
struct FileStretch {
  int file = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// `memory` is cut into slots of `slot_bytes`, which is a multiple of the file's
// alignment and at most memory.size(); what is left over is not used.
Status SweepFile(Reader* reader, const FileStretch& stretch,
                 std::span<std::byte> memory, uint64_t slot_bytes);

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_FILE_SWEEP_H_
