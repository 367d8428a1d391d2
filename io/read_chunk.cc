#include "io/read_chunk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/align.h"
#include "base/check.h"

namespace coldstream {

uint64_t BlockBytes(const DirectAlignment& alignment) {
  // Both are powers of two, so the larger is a multiple of the smaller.
  return std::max({alignment.memory, alignment.offset, uint32_t{1}});
}

Status CheckWindow(const ReadWindow& window, const File& file) {
  const auto invalid = [&](const char* what) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: read of %d bytes at offset %d %s", file.path(),
                        window.length, window.offset, what));
  };
  if (window.offset > file.size() ||
      window.length > file.size() - window.offset) {
    return invalid("ends past the end of the file");
  }
  if (!file.direct()) return absl::OkStatus();
  const DirectAlignment& alignment = file.alignment();
  const bool to_the_end = window.offset + window.length == file.size();
  if (window.offset % alignment.offset != 0 ||
      (!to_the_end && window.length % alignment.offset != 0)) {
    return invalid("is not on block boundaries");
  }
  if (reinterpret_cast<uintptr_t>(window.destination) % alignment.memory != 0) {
    return invalid("goes to memory that is not aligned");
  }
  return absl::OkStatus();
}

ChunkCutter::ChunkCutter(std::vector<ReadWindow> windows)
    : windows_(std::move(windows)) {
  std::erase_if(windows_, [](const ReadWindow& w) { return w.length == 0; });
}

ReadWindow ChunkCutter::Next(uint64_t chunk_bytes) {
  DCHECK(!done());
  const ReadWindow& window = windows_[window_];
  ReadWindow piece = window;
  piece.offset += cut_;
  piece.destination += cut_;
  piece.length = std::min(chunk_bytes, window.length - cut_);
  cut_ += piece.length;
  if (cut_ == window.length) {
    ++window_;
    cut_ = 0;
  }
  return piece;
}

RawRead ReadChunk::NextRead(const DirectAlignment& alignment,
                            bool buffered) const {
  RawRead read;
  read.file = rest_.file;
  read.offset = rest_.offset;
  read.destination = rest_.destination;
  read.buffered = buffered;
  uint64_t length = rest_.length;
  if (!buffered) {
    const uint64_t block = std::max(alignment.offset, uint32_t{1});
    length = AlignUp(length, block);
  }
  CHECK(length <= uint64_t{1} << 31);
  read.length = static_cast<uint32_t>(length);
  return read;
}

ReadChunk::Progress ReadChunk::Advance(uint64_t bytes,
                                       const DirectAlignment& alignment,
                                       bool buffered) {
  if (bytes >= rest_.length) {
    rest_.length = 0;
    return Progress::kDone;
  }
  const uint64_t block = buffered ? 1 : BlockBytes(alignment);
  const uint64_t kept = bytes / block * block;
  rest_.offset += kept;
  rest_.destination += kept;
  rest_.length -= kept;
  return kept > 0 ? Progress::kAdvanced : Progress::kStuck;
}

}  // namespace coldstream
