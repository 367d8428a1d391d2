#include "io/gguf_writer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/align.h"
#include "base/check.h"
#include "io/printable.h"

namespace coldstream {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint64_t kFixedHeaderBytes = 24;  // magic, version, two counts

template <typename T>
void AppendNumber(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

Status InvalidTensor(std::string_view name, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrFormat("tensor %s: %s", Printable(name, 100), what));
}

StatusOr<uint64_t> TensorBytes(std::string_view name, DType type,
                               std::span<const uint64_t> shape) {
  const DTypeInfo& info = InfoOf(type);
  if (shape.empty() || shape.size() > kGgufMaxDims) {
    return InvalidTensor(name, absl::StrFormat("%d dimensions, expected 1..%d",
                                               shape.size(), kGgufMaxDims));
  }
  if (shape[0] % info.block_elements != 0) {
    return InvalidTensor(
        name,
        absl::StrFormat("row length %d, expected a multiple of %d for type %s",
                        shape[0], info.block_elements, info.name));
  }
  uint64_t bytes = info.block_bytes;
  bool too_large =
      __builtin_mul_overflow(bytes, shape[0] / info.block_elements, &bytes);
  for (size_t i = 1; i < shape.size(); ++i)
    too_large |= __builtin_mul_overflow(bytes, shape[i], &bytes);
  // One bit is left free so that offsets and padding cannot overflow.
  if (too_large || bytes > uint64_t{1} << 62)
    return InvalidTensor(name, "more bytes than a file can hold");
  if (bytes == 0) return InvalidTensor(name, "a dimension is 0");
  return bytes;
}

}  // namespace

GgufWriter::GgufWriter(uint32_t alignment) : alignment_(alignment) {
  CHECK(std::has_single_bit(alignment) && alignment >= 8);
  if (alignment != kGgufDefaultAlignment)
    CHECK(AddMetadata("general.alignment", alignment).ok());
}

Status GgufWriter::CheckDeclaring(const char* what,
                                  std::string_view name) const {
  if (file_ != nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s %s: declared after writing began", what, Printable(name, 100)));
  }
  if (name.empty() || name.size() > kGgufMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s %s: name of %d bytes, expected 1..%d", what,
                        Printable(name, 100), name.size(), kGgufMaxNameBytes));
  }
  return absl::OkStatus();
}

Status GgufWriter::AddMetadata(std::string_view key, const GgufValue& value) {
  RETURN_IF_ERROR(CheckDeclaring("metadata key", key));
  if (!keys_.emplace(key).second) {
    return absl::InvalidArgumentError(
        absl::StrFormat("metadata key %s: added twice", Printable(key, 100)));
  }
  AppendGgufString(key, &metadata_);
  AppendGgufValue(value, &metadata_);
  ++pairs_;
  return absl::OkStatus();
}

Status GgufWriter::AddTensor(std::string_view name, DType type,
                             std::span<const uint64_t> shape) {
  RETURN_IF_ERROR(CheckDeclaring("tensor", name));
  ASSIGN_OR_RETURN(const uint64_t bytes, TensorBytes(name, type, shape));
  const uint64_t offset = AlignUp(data_bytes_, alignment_);
  if (bytes > (uint64_t{1} << 62) - offset)
    return InvalidTensor(name, "more bytes than a file can hold");
  if (!names_.emplace(name).second) return InvalidTensor(name, "added twice");
  AppendGgufString(name, &descriptions_);
  AppendNumber(static_cast<uint32_t>(shape.size()), &descriptions_);
  for (const uint64_t dim : shape) AppendNumber(dim, &descriptions_);
  AppendNumber(static_cast<uint32_t>(type), &descriptions_);
  AppendNumber(offset, &descriptions_);
  tensors_.push_back({std::string(name), bytes, offset});
  data_bytes_ = offset + bytes;
  unwritten_ += bytes;
  return absl::OkStatus();
}

uint64_t GgufWriter::header_bytes() const {
  const uint64_t bytes =
      kFixedHeaderBytes + metadata_.size() + descriptions_.size();
  return tensors_.empty() ? bytes : AlignUp(bytes, alignment_);
}

// The last tensor is padded too: some readers want it.
uint64_t GgufWriter::file_bytes() const {
  return header_bytes() + AlignUp(data_bytes_, alignment_);
}

std::string GgufWriter::Header() const {
  std::string header = "GGUF";
  AppendNumber(kVersion, &header);
  AppendNumber(uint64_t{tensors_.size()}, &header);
  AppendNumber(pairs_, &header);
  header += metadata_;
  header += descriptions_;
  header.resize(header_bytes(), '\0');
  return header;
}

Status GgufWriter::Begin(const std::string& path) {
  if (file_ != nullptr)
    return absl::FailedPreconditionError("GgufWriter::Begin called twice");
  ASSIGN_OR_RETURN(file_, AtomicFile::Create(path, file_bytes()));
  const std::string header = Header();
  return file_->Append(std::as_bytes(std::span(header)));
}

Status GgufWriter::Pad(uint64_t until) {
  const std::vector<std::byte> zeros(until -
                                     (file_->written() - header_bytes()));
  return file_->Append(zeros);
}

Status GgufWriter::Write(std::span<const std::byte> bytes) {
  if (file_ == nullptr)
    return absl::FailedPreconditionError("GgufWriter::Write before Begin");
  if (bytes.size() > unwritten_) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%d bytes of tensor data, expected at most %d more",
                        bytes.size(), unwritten_));
  }
  unwritten_ -= bytes.size();
  while (!bytes.empty()) {
    const Tensor& tensor = tensors_[tensor_];
    if (in_tensor_ == 0) RETURN_IF_ERROR(Pad(tensor.offset));
    const size_t now = static_cast<size_t>(
        std::min<uint64_t>(bytes.size(), tensor.bytes - in_tensor_));
    RETURN_IF_ERROR(file_->Append(bytes.first(now)));
    bytes = bytes.subspan(now);
    in_tensor_ += now;
    if (in_tensor_ < tensor.bytes) continue;
    in_tensor_ = 0;
    ++tensor_;
  }
  return absl::OkStatus();
}

Status GgufWriter::Finish() {
  if (file_ == nullptr)
    return absl::FailedPreconditionError("GgufWriter::Finish before Begin");
  if (tensor_ < tensors_.size()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("tensor %s: %d of %d bytes written",
                        Printable(tensors_[tensor_].name, 100), in_tensor_,
                        tensors_[tensor_].bytes));
  }
  RETURN_IF_ERROR(Pad(AlignUp(data_bytes_, alignment_)));
  return file_->Commit();
}

}  // namespace coldstream
