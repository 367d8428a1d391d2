// Reads a file's header front to back through one buffer.
//
// Invariant: no length taken from the file is trusted. Every read is checked
// against the bytes the file still has, and against kMaxHeaderBytes, before
// memory is taken for it. Numbers are little-endian.
//
//   HeaderReader reader(*file);
//   reader.SetContext("metadata key", key);  // for errors: what is being read
//   ASSIGN_OR_RETURN(uint32_t type, reader.Read<uint32_t>());
//
// Errors: DataLoss "file is incomplete: header needs at least N bytes, file has
// M"; InvalidArgument past kMaxHeaderBytes.
// Lifetime: the file; what SetContext was given, until the next SetContext.
#ifndef COLDSTREAM_IO_HEADER_READER_H_
#define COLDSTREAM_IO_HEADER_READER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/file.h"

namespace coldstream {

// The largest vocabularies known need 20 MB; a count that asks for more than
// this in a file large enough to hold it is corrupt.
inline constexpr uint64_t kMaxHeaderBytes = uint64_t{256} << 20;

class HeaderReader {
 public:
  explicit HeaderReader(const File& file) : file_(file) {}

  // What is being read, for errors; `name` comes from the file and is escaped.
  void SetContext(const char* what, std::string_view name) {
    what_ = what;
    name_ = name;
  }

  const File& file() const { return file_; }
  uint64_t position() const { return position_; }
  uint64_t remaining() const { return file_.size() - position_; }

  template <typename T>
  StatusOr<T> Read() {
    static_assert(std::endian::native == std::endian::little);
    ASSIGN_OR_RETURN(const std::string_view bytes, ReadView(sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  // The next `length` bytes; the view holds until the next call.
  StatusOr<std::string_view> ReadView(uint64_t length);

  // A string with a 64-bit length before it; the view as above.
  StatusOr<std::string_view> ReadString(uint64_t max_length);

  Status Skip(uint64_t length);

  // Fails, as a read would, unless `count` entries of at least `entry_bytes`
  // can follow.
  Status CheckRoom(uint64_t count, uint64_t entry_bytes) const;

  // " reading WHAT NAME at offset N" for messages.
  std::string Place() const;

 private:
  Status Incomplete(uint64_t needed) const;
  Status Fill(uint64_t length);

  const File& file_;
  const char* what_ = "header";
  std::string_view name_;
  uint64_t position_ = 0;  // of the next byte handed out
  std::vector<char> buffer_;
  size_t begin_ = 0;  // buffer_[begin_, end_) is read and not handed out
  size_t end_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_IO_HEADER_READER_H_
