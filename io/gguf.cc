#include "io/gguf.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "base/align.h"
#include "io/gguf_magic.h"
#include "io/gguf_metadata.h"
#include "io/header_reader.h"
#include "io/printable.h"

namespace coldstream {
namespace {

// Name length, name of one byte, one dimension, type, offset.
constexpr uint64_t kSmallestTensorInfo = 8 + 1 + 4 + 8 + 4 + 8;

// Names of type ids, for messages about those that are not supported.
std::string TypeIdName(uint32_t id) {
  static constexpr std::array<const char*, 43> kNames = {
      "f32",
      "f16",
      "q4_0",
      "q4_1",
      "removed type q4_2",
      "removed type q4_3",
      "q5_0",
      "q5_1",
      "q8_0",
      "q8_1",
      "q2_k",
      "q3_k",
      "q4_k",
      "q5_k",
      "q6_k",
      "q8_k",
      "iq2_xxs",
      "iq2_xs",
      "iq3_xxs",
      "iq1_s",
      "iq4_nl",
      "iq3_s",
      "iq2_s",
      "iq4_xs",
      "i8",
      "i16",
      "i32",
      "i64",
      "f64",
      "iq1_m",
      "bf16",
      "removed type q4_0_4_4",
      "removed type q4_0_4_8",
      "removed type q4_0_8_8",
      "tq1_0",
      "tq2_0",
      "removed type iq4_nl_4_4",
      "removed type iq4_nl_4_8",
      "removed type iq4_nl_8_8",
      "mxfp4",
      "nvfp4",
      "unknown type",
      "unknown type"};
  return id < kNames.size() ? kNames[id] : "unknown type";
}

// Reads one description after another. Errors name the tensor.
class TensorReader {
 public:
  TensorReader(HeaderReader* reader, const GgufFile& out)
      : reader_(*reader), out_(out) {}

  // extent.offset is still relative to the start of the data.
  StatusOr<TensorInfo> ReadTensor();

 private:
  StatusOr<std::vector<uint64_t>> ReadShape();
  StatusOr<DType> ReadDType();
  // Bytes of the tensor; checks that rows are whole blocks and that the size
  // can be counted.
  StatusOr<uint64_t> SizeOf(const TensorInfo& tensor);

  Status Malformed(uint64_t at, const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: tensor %s: %s (offset %d)", reader_.file().path(),
                        name_, what, at));
  }

  HeaderReader& reader_;
  const GgufFile& out_;
  std::string name_;  // escaped
};

StatusOr<std::vector<uint64_t>> TensorReader::ReadShape() {
  const uint64_t at = reader_.position();
  ASSIGN_OR_RETURN(const uint32_t dims, reader_.Read<uint32_t>());
  if (dims < 1 || dims > kGgufMaxDims) {
    return Malformed(at, absl::StrFormat("%d dimensions, expected 1..%d", dims,
                                         kGgufMaxDims));
  }
  std::vector<uint64_t> shape;
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dims; ++i) {
    const uint64_t dim_at = reader_.position();
    ASSIGN_OR_RETURN(const uint64_t dim, reader_.Read<uint64_t>());
    if (dim == 0) {
      return Malformed(
          dim_at, absl::StrFormat("dimension %d is 0, expected at least 1", i));
    }
    if (__builtin_mul_overflow(elements, dim, &elements) ||
        !std::in_range<int64_t>(elements)) {
      return Malformed(
          dim_at, absl::StrFormat("dimension %d is %d: more elements than 64 "
                                  "bits count",
                                  i, dim));
    }
    shape.push_back(dim);
  }
  return shape;
}

StatusOr<DType> TensorReader::ReadDType() {
  const uint64_t at = reader_.position();
  ASSIGN_OR_RETURN(const uint32_t id, reader_.Read<uint32_t>());
  if (const std::optional<DType> type = DTypeFromId(id)) return *type;
  return Malformed(at,
                   absl::StrFormat("type %d (%s) is not supported, only %s", id,
                                   TypeIdName(id), SupportedDTypeNames()));
}

StatusOr<uint64_t> TensorReader::SizeOf(const TensorInfo& tensor) {
  const DTypeInfo& type = InfoOf(tensor.type);
  if (tensor.shape[0] % type.block_elements != 0) {
    return Malformed(
        reader_.position(),
        absl::StrFormat("row length %d, expected a multiple of %d for type %s",
                        tensor.shape[0], type.block_elements, type.name));
  }
  uint64_t bytes = tensor.shape[0] / type.block_elements;
  bool too_large = __builtin_mul_overflow(bytes, type.block_bytes, &bytes);
  for (size_t i = 1; i < tensor.shape.size(); ++i)
    too_large |= __builtin_mul_overflow(bytes, tensor.shape[i], &bytes);
  if (too_large)
    return Malformed(reader_.position(), "more bytes than 64 bits count");
  return bytes;
}

StatusOr<TensorInfo> TensorReader::ReadTensor() {
  TensorInfo tensor;
  reader_.SetContext("the name of a tensor", "");
  const uint64_t at = reader_.position();
  ASSIGN_OR_RETURN(const std::string_view name,
                   reader_.ReadString(kGgufMaxNameBytes));
  tensor.name = std::string(name);
  name_ = Printable(name, 100);
  if (name.empty()) return Malformed(at, "its name is empty");
  reader_.SetContext("tensor", name_);
  ASSIGN_OR_RETURN(tensor.shape, ReadShape());
  ASSIGN_OR_RETURN(tensor.type, ReadDType());
  ASSIGN_OR_RETURN(tensor.extent.length, SizeOf(tensor));
  const uint64_t offset_at = reader_.position();
  ASSIGN_OR_RETURN(tensor.extent.offset, reader_.Read<uint64_t>());
  if (tensor.extent.offset % out_.alignment != 0) {
    return Malformed(
        offset_at,
        absl::StrFormat("data offset %d, expected a multiple of the alignment "
                        "%d",
                        tensor.extent.offset, out_.alignment));
  }
  return tensor;
}

Status ReadTensors(uint64_t count, HeaderReader* reader, GgufFile* out) {
  reader->SetContext("tensors", "");
  RETURN_IF_ERROR(reader->CheckRoom(count, kSmallestTensorInfo));
  TensorReader tensors(reader, *out);
  absl::flat_hash_set<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = reader->position();
    ASSIGN_OR_RETURN(TensorInfo tensor, tensors.ReadTensor());
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: tensor %s appears twice (offset %d)",
                          out->file->path(), Printable(tensor.name, 100), at));
    }
    out->tensors.push_back(std::move(tensor));
  }
  reader->SetContext("header", "");
  return absl::OkStatus();
}

// Makes offsets absolute; checks that all data lies inside the file.
Status PlaceTensors(GgufFile* out) {
  const uint64_t size = out->file->size();
  uint64_t needed = out->data_begin;
  const TensorInfo* outside = nullptr;
  for (TensorInfo& tensor : out->tensors) {
    uint64_t end = 0;
    if (__builtin_add_overflow(tensor.extent.offset, out->data_begin,
                               &tensor.extent.offset) ||
        __builtin_add_overflow(tensor.extent.offset, tensor.extent.length,
                               &end)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: tensor %s: %d bytes at an offset past 64 bits, file has %d",
          out->file->path(), Printable(tensor.name, 100), tensor.extent.length,
          size));
    }
    if (end > size && outside == nullptr) outside = &tensor;
    needed = std::max(needed, end);
  }
  if (outside == nullptr) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s: file is incomplete: header needs %d bytes, file has %d (tensor %s, "
      "%s, has %d bytes at offset %d); download it again",
      out->file->path(), needed, size, Printable(outside->name, 100),
      InfoOf(outside->type).name, outside->extent.length,
      outside->extent.offset));
}

Status CheckOverlap(const GgufFile& gguf) {
  std::vector<const TensorInfo*> by_offset;
  for (const TensorInfo& tensor : gguf.tensors) by_offset.push_back(&tensor);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const TensorInfo* a, const TensorInfo* b) {
              return a->extent.offset < b->extent.offset;
            });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const TensorInfo& first = *by_offset[i - 1];
    const TensorInfo& second = *by_offset[i];
    if (first.extent.offset + first.extent.length <= second.extent.offset)
      continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: tensor %s (%d bytes at offset %d) overlaps tensor %s (offset %d)",
        gguf.file->path(), Printable(first.name, 100), first.extent.length,
        first.extent.offset, Printable(second.name, 100),
        second.extent.offset));
  }
  return absl::OkStatus();
}

// Whether another GGUF file begins at `offset`.
StatusOr<bool> HasMagicAt(const File& file, uint64_t offset) {
  std::array<char, 4> magic{};
  if (offset > file.size() || file.size() - offset < magic.size()) return false;
  RETURN_IF_ERROR(
      file.ReadExactly(offset, std::as_writable_bytes(std::span(magic))));
  return std::string_view(magic.data(), magic.size()) == "GGUF";
}

// Bytes that no tensor accounts for: a failed resume, or parts glued together.
Status CheckTail(uint64_t header_end, GgufFile* out) {
  uint64_t end = header_end;
  for (const TensorInfo& tensor : out->tensors)
    end = std::max(end, tensor.extent.offset + tensor.extent.length);
  const uint64_t padded = AlignUp(end, out->alignment);
  const uint64_t size = out->file->size();
  for (const uint64_t offset : {end, padded}) {
    ASSIGN_OR_RETURN(const bool glued, HasMagicAt(*out->file, offset));
    if (!glued) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: another GGUF file begins at offset %d (header needs %d bytes, "
        "file has %d): parts glued together? keep them as separate files",
        out->file->path(), offset, end, size));
  }
  if (size <= padded) return absl::OkStatus();
  out->warnings.push_back(absl::StrFormat(
      "%s: %d bytes past the end of the last tensor (header needs %d bytes, "
      "file has %d); a download may have gone wrong",
      out->file->path(), size - padded, padded, size));
  return absl::OkStatus();
}

}  // namespace

StatusOr<GgufFile> ParseGguf(std::shared_ptr<File> file) {
  GgufFile out;
  out.file = std::move(file);
  ASSIGN_OR_RETURN(out.version, ReadGgufVersion(*out.file));
  HeaderReader reader(*out.file);
  RETURN_IF_ERROR(reader.Skip(8));  // magic and version
  ASSIGN_OR_RETURN(const uint64_t tensors, reader.Read<uint64_t>());
  ASSIGN_OR_RETURN(const uint64_t pairs, reader.Read<uint64_t>());
  RETURN_IF_ERROR(ReadGgufMetadata(pairs, &reader, &out));
  RETURN_IF_ERROR(ReadTensors(tensors, &reader, &out));
  out.data_begin = AlignUp(reader.position(), out.alignment);
  RETURN_IF_ERROR(PlaceTensors(&out));
  RETURN_IF_ERROR(CheckOverlap(out));
  RETURN_IF_ERROR(CheckTail(reader.position(), &out));
  return out;
}

}  // namespace coldstream
