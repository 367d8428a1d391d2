// Chunks: the pieces in which a request goes to the disk, and how a piece that
// came back short is continued.
//
// ChunkCutter walks a request's windows and cuts them, in order, into pieces of
// at most `chunk_bytes`; offsets are 64 bits wide, so a window may be larger
// than the 2 GiB that the kernel moves in one read. ReadChunk is one piece in
// progress: it asks for whole blocks and counts only bytes of the piece.
//
// Thread-safety: none; the reader's thread owns both.
#ifndef COLDSTREAM_IO_READ_CHUNK_H_
#define COLDSTREAM_IO_READ_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "io/file.h"
#include "io/read_backend.h"
#include "io/reader.h"

namespace coldstream {

class ChunkCutter {
 public:
  // Windows of no bytes are dropped.
  explicit ChunkCutter(std::vector<ReadWindow> windows);

  bool done() const { return window_ == windows_.size(); }
  // The file of the next piece.
  int file() const { return windows_[window_].file; }
  // The next piece, at most `chunk_bytes` long. Only if not done().
  ReadWindow Next(uint64_t chunk_bytes);

 private:
  std::vector<ReadWindow> windows_;
  size_t window_ = 0;
  uint64_t cut_ = 0;  // bytes of the current window handed out already
};

class ReadChunk {
 public:
  enum class Progress {
    kDone,      // every byte is there
    kAdvanced,  // short; the next read starts further on
    kStuck,     // short by less than a block: the next read starts where this
                // one did
  };

  ReadChunk() = default;
  explicit ReadChunk(const ReadWindow& piece) : rest_(piece) {}

  // The read that would finish the chunk. With O_DIRECT its length is rounded
  // up to whole blocks: at the end of the file the kernel then returns less,
  // and the window's destination has the room.
  RawRead NextRead(const DirectAlignment& alignment, bool buffered) const;

  // Takes the kernel's answer to NextRead, `bytes` > 0. A short direct read is
  // continued from the start of the block that it broke off in.
  Progress Advance(uint64_t bytes, const DirectAlignment& alignment,
                   bool buffered);

  int file() const { return rest_.file; }
  // What is still missing, from the next read's offset on.
  uint64_t offset() const { return rest_.offset; }
  uint64_t missing() const { return rest_.length; }

 private:
  ReadWindow rest_;
};

// InvalidArgument where a window leaves the file or, for a direct file, breaks
// what ReadWindow promises.
Status CheckWindow(const ReadWindow& window, const File& file);

// The step that keeps both offset and destination aligned.
uint64_t BlockBytes(const DirectAlignment& alignment);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_READ_CHUNK_H_
