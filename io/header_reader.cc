#include "io/header_reader.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "io/printable.h"

namespace coldstream {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr size_t kMostOfName = 100;

}  // namespace

std::string HeaderReader::Place() const {
  std::string place = absl::StrFormat("reading %s", what_);
  if (!name_.empty()) place.append(" ").append(Printable(name_, kMostOfName));
  return place + absl::StrFormat(" at offset %d", position_);
}

Status HeaderReader::Incomplete(uint64_t needed) const {
  return absl::DataLossError(absl::StrFormat(
      "%s: file is incomplete: header needs at least %d bytes, file has %d "
      "(%s); download it again",
      file_.path(), needed, file_.size(), Place()));
}

Status HeaderReader::CheckRoom(uint64_t count, uint64_t entry_bytes) const {
  if (count > remaining() / entry_bytes) {
    // The product may not fit 64 bits: say what is known.
    return absl::DataLossError(absl::StrFormat(
        "%s: file is incomplete or corrupt: %d entries of at least %d bytes "
        "announced, %d bytes left of %d (%s)",
        file_.path(), count, entry_bytes, remaining(), file_.size(), Place()));
  }
  if (position_ + count * entry_bytes > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: header is corrupt: %d entries of at least %d bytes announced, but "
        "no header is larger than %d bytes (%s)",
        file_.path(), count, entry_bytes, kMaxHeaderBytes, Place()));
  }
  return absl::OkStatus();
}

// Makes buffer_[begin_, begin_ + length) valid; `length` is checked.
Status HeaderReader::Fill(uint64_t length) {
  std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  const size_t wanted =
      std::max<uint64_t>(length, std::min<uint64_t>(kBufferBytes, remaining()));
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  const uint64_t more =
      std::min<uint64_t>(buffer_.size() - end_, remaining() - end_);
  RETURN_IF_ERROR(file_.ReadExactly(
      position_ + end_,
      std::as_writable_bytes(std::span(buffer_).subspan(end_, more))));
  end_ += more;
  return absl::OkStatus();
}

StatusOr<std::string_view> HeaderReader::ReadView(uint64_t length) {
  if (length > end_ - begin_) {
    if (length > remaining()) {
      const uint64_t needed = position_ + length;
      if (needed < length) return CheckRoom(length, 1);
      return Incomplete(needed);
    }
    RETURN_IF_ERROR(CheckRoom(length, 1));
    RETURN_IF_ERROR(Fill(length));
  }
  const std::string_view view(buffer_.data() + begin_, length);
  begin_ += length;
  position_ += length;
  return view;
}

StatusOr<std::string_view> HeaderReader::ReadString(uint64_t max_length) {
  const uint64_t at = position_;
  ASSIGN_OR_RETURN(const uint64_t length, Read<uint64_t>());
  if (length > max_length && length <= remaining()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: string of %d bytes at offset %d, expected at most %d (%s)",
        file_.path(), length, at, max_length, Place()));
  }
  return ReadView(length);
}

Status HeaderReader::Skip(uint64_t length) {
  while (length > 0) {
    const uint64_t piece = std::min<uint64_t>(length, kBufferBytes);
    RETURN_IF_ERROR(ReadView(piece).status());
    length -= piece;
  }
  return absl::OkStatus();
}

}  // namespace coldstream
