#include "io/gguf_metadata.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "io/printable.h"

namespace coldstream {
namespace {

constexpr uint64_t kMaxStringBytes = uint64_t{64} << 20;
constexpr int kMaxArrayDepth = 4;
constexpr uint64_t kSmallestPair = 8 + 1 + 4 + 1;  // key of one byte, u8 value
constexpr uint32_t kLargestAlignment = uint32_t{1} << 24;

constexpr std::array<const char*, 13> kTypeNames = {
    "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
    "bool",  "string", "array",  "uint64", "int64",  "float64"};

// Reads one value after another. Errors name the key.
class ValueReader {
 public:
  explicit ValueReader(HeaderReader* reader) : reader_(*reader) {}

  // nullopt: an array of arrays, passed over.
  StatusOr<std::optional<MetadataValue>> ReadValue(GgufType type);

  StatusOr<GgufType> ReadType();

  Status Malformed(uint64_t at, const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: metadata key %s: %s (offset %d)",
                        reader_.file().path(), key_, what, at));
  }
  void SetKey(std::string_view key) { key_ = Printable(key, 100); }

 private:
  template <typename T>
  StatusOr<std::optional<MetadataValue>> ReadNumber() {
    ASSIGN_OR_RETURN(const T value, reader_.Read<T>());
    return MetadataValue(Widen(value));
  }
  // `most`: the largest entry taken, of unsigned types.
  template <typename T>
  StatusOr<std::optional<MetadataValue>> ReadNumbers(
      uint64_t count, uint64_t most = std::numeric_limits<int64_t>::max());
  StatusOr<std::optional<MetadataValue>> ReadBool();
  StatusOr<std::optional<MetadataValue>> ReadString();
  StatusOr<std::optional<MetadataValue>> ReadArray();
  StatusOr<std::optional<MetadataValue>> ReadStrings(uint64_t count);
  Status SkipArrays(uint64_t count, int depth);

  // Integers as int64_t or, above its range, uint64_t; floats as double.
  template <typename T>
  static MetadataValue Widen(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<double>(value);
    } else {
      if (!std::in_range<int64_t>(value)) return static_cast<uint64_t>(value);
      return static_cast<int64_t>(value);
    }
  }

  HeaderReader& reader_;
  std::string key_;
};

StatusOr<GgufType> ValueReader::ReadType() {
  const uint64_t at = reader_.position();
  ASSIGN_OR_RETURN(const uint32_t id, reader_.Read<uint32_t>());
  if (id < kTypeNames.size()) return static_cast<GgufType>(id);
  return Malformed(at, absl::StrFormat("value type %d, expected 0..%d", id,
                                       kTypeNames.size() - 1));
}

StatusOr<std::optional<MetadataValue>> ValueReader::ReadBool() {
  const uint64_t at = reader_.position();
  ASSIGN_OR_RETURN(const uint8_t value, reader_.Read<uint8_t>());
  if (value <= 1) return MetadataValue(value == 1);
  return Malformed(at, absl::StrFormat("bool is %d, expected 0 or 1", value));
}

StatusOr<std::optional<MetadataValue>> ValueReader::ReadString() {
  ASSIGN_OR_RETURN(const std::string_view text,
                   reader_.ReadString(kMaxStringBytes));
  return MetadataValue(std::string(text));
}

template <typename T>
StatusOr<std::optional<MetadataValue>> ValueReader::ReadNumbers(uint64_t count,
                                                                uint64_t most) {
  using Kept = std::conditional_t<std::is_floating_point_v<T>, float, int64_t>;
  constexpr uint64_t kPiece = 16384;
  RETURN_IF_ERROR(reader_.CheckRoom(count, sizeof(T)));
  std::vector<Kept> values;
  values.reserve(count);
  while (values.size() < count) {
    const uint64_t piece = std::min<uint64_t>(count - values.size(), kPiece);
    const uint64_t at = reader_.position();
    ASSIGN_OR_RETURN(const std::string_view bytes,
                     reader_.ReadView(piece * sizeof(T)));
    for (uint64_t i = 0; i < piece; ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      if constexpr (std::is_unsigned_v<T>) {
        if (value > most) {
          return Malformed(at + i * sizeof(T),
                           absl::StrFormat("array entry %d, expected at most "
                                           "%d",
                                           value, most));
        }
      }
      values.push_back(static_cast<Kept>(value));
    }
  }
  return MetadataValue(std::move(values));
}

StatusOr<std::optional<MetadataValue>> ValueReader::ReadStrings(
    uint64_t count) {
  RETURN_IF_ERROR(reader_.CheckRoom(count, sizeof(uint64_t)));
  StringArray strings;
  strings.Reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const std::string_view text,
                     reader_.ReadString(kMaxStringBytes));
    strings.Append(text);
  }
  strings.ShrinkToFit();
  return MetadataValue(std::move(strings));
}

// Passes over `count` arrays that lie in an array nested `depth` deep. Each
// costs the file 12 bytes, so the work is bounded by its size.
Status ValueReader::SkipArrays(uint64_t count, int depth) {
  if (depth > kMaxArrayDepth) {
    return Malformed(
        reader_.position(),
        absl::StrFormat("arrays nested deeper than %d", kMaxArrayDepth));
  }
  RETURN_IF_ERROR(reader_.CheckRoom(count, 12));
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const GgufType type, ReadType());
    ASSIGN_OR_RETURN(const uint64_t entries, reader_.Read<uint64_t>());
    if (type == GgufType::kArray) {
      RETURN_IF_ERROR(SkipArrays(entries, depth + 1));
    } else if (type == GgufType::kString) {
      RETURN_IF_ERROR(ReadStrings(entries).status());
    } else {
      constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
      const uint64_t width = kBytes[static_cast<size_t>(type)];
      RETURN_IF_ERROR(reader_.CheckRoom(entries, width));
      RETURN_IF_ERROR(reader_.Skip(entries * width));
    }
  }
  return absl::OkStatus();
}

StatusOr<std::optional<MetadataValue>> ValueReader::ReadArray() {
  ASSIGN_OR_RETURN(const GgufType type, ReadType());
  ASSIGN_OR_RETURN(const uint64_t count, reader_.Read<uint64_t>());
  if (count == 0) return MetadataValue(IntArray());
  switch (type) {
    case GgufType::kU8:
      return ReadNumbers<uint8_t>(count);
    case GgufType::kI8:
      return ReadNumbers<int8_t>(count);
    case GgufType::kU16:
      return ReadNumbers<uint16_t>(count);
    case GgufType::kI16:
      return ReadNumbers<int16_t>(count);
    case GgufType::kU32:
      return ReadNumbers<uint32_t>(count);
    case GgufType::kI32:
      return ReadNumbers<int32_t>(count);
    case GgufType::kF32:
      return ReadNumbers<float>(count);
    case GgufType::kU64:
      return ReadNumbers<uint64_t>(count);
    case GgufType::kI64:
      return ReadNumbers<int64_t>(count);
    case GgufType::kF64:
      return ReadNumbers<double>(count);
    case GgufType::kString:
      return ReadStrings(count);
    case GgufType::kArray:
      RETURN_IF_ERROR(SkipArrays(count, 2));
      return std::optional<MetadataValue>();
    case GgufType::kBool:
      break;
  }
  return ReadNumbers<uint8_t>(count, 1);
}

StatusOr<std::optional<MetadataValue>> ValueReader::ReadValue(GgufType type) {
  switch (type) {
    case GgufType::kU8:
      return ReadNumber<uint8_t>();
    case GgufType::kI8:
      return ReadNumber<int8_t>();
    case GgufType::kU16:
      return ReadNumber<uint16_t>();
    case GgufType::kI16:
      return ReadNumber<int16_t>();
    case GgufType::kU32:
      return ReadNumber<uint32_t>();
    case GgufType::kI32:
      return ReadNumber<int32_t>();
    case GgufType::kF32:
      return ReadNumber<float>();
    case GgufType::kU64:
      return ReadNumber<uint64_t>();
    case GgufType::kI64:
      return ReadNumber<int64_t>();
    case GgufType::kF64:
      return ReadNumber<double>();
    case GgufType::kBool:
      return ReadBool();
    case GgufType::kString:
      return ReadString();
    case GgufType::kArray:
      break;
  }
  return ReadArray();
}

// general.alignment divides and multiplies offsets, so nothing but a sensible
// power of two in the type of the specification is taken.
Status SetAlignment(const ValueReader& values, uint64_t at, GgufType type,
                    const MetadataValue& value, GgufFile* out) {
  if (type != GgufType::kU32) {
    return values.Malformed(
        at, absl::StrFormat("stored as %s, expected uint32",
                            kTypeNames[static_cast<size_t>(type)]));
  }
  const uint32_t alignment = static_cast<uint32_t>(std::get<int64_t>(value));
  if (!std::has_single_bit(alignment) || alignment > kLargestAlignment) {
    return values.Malformed(
        at, absl::StrFormat("is %d, expected a power of two up to %d",
                            alignment, kLargestAlignment));
  }
  if (alignment < 8) {
    out->warnings.push_back(absl::StrFormat(
        "%s: metadata key general.alignment is %d; the format asks for a "
        "multiple of 8",
        out->file->path(), alignment));
  }
  out->alignment = alignment;
  return absl::OkStatus();
}

}  // namespace

Status ReadGgufMetadata(uint64_t count, HeaderReader* reader, GgufFile* out) {
  reader->SetContext("metadata", "");
  RETURN_IF_ERROR(reader->CheckRoom(count, kSmallestPair));
  ValueReader values(reader);
  for (uint64_t i = 0; i < count; ++i) {
    reader->SetContext("the name of a metadata key", "");
    const uint64_t at = reader->position();
    ASSIGN_OR_RETURN(const std::string_view name,
                     reader->ReadString(kGgufMaxNameBytes));
    std::string key(name);
    values.SetKey(key);
    reader->SetContext("metadata key", key);
    if (key.empty()) return values.Malformed(at, "its name is empty");
    ASSIGN_OR_RETURN(const GgufType type, values.ReadType());
    ASSIGN_OR_RETURN(std::optional<MetadataValue> value,
                     values.ReadValue(type));
    reader->SetContext("header", "");
    if (!value.has_value()) {
      out->warnings.push_back(
          absl::StrFormat("%s: metadata key %s: array of arrays, not kept",
                          out->file->path(), Printable(key, 100)));
      continue;
    }
    if (key == "general.alignment")
      RETURN_IF_ERROR(SetAlignment(values, at, type, *value, out));
    if (!out->metadata.Insert(std::move(key), *std::move(value)))
      return values.Malformed(at, "appears twice");
  }
  return absl::OkStatus();
}

}  // namespace coldstream
