#include "io/metadata.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

// Names of the alternatives of MetadataValue, in their order.
constexpr std::array<const char*, std::variant_size_v<MetadataValue>> kKinds = {
    "a bool",
    "an integer",
    "an integer",
    "a float",
    "a string",
    "an array of integers",
    "an array of floats",
    "an array of strings"};

Status WrongKind(std::string_view key, const MetadataValue& value,
                 const char* expected) {
  return absl::InvalidArgumentError(
      absl::StrFormat("metadata key %s is %s, expected %s", key,
                      kKinds[value.index()], expected));
}

// An empty array has lost its element type (it is kept as IntArray), so it fits
// whatever array is asked for.
bool IsEmptyArray(const MetadataValue& value) {
  const IntArray* ints = std::get_if<IntArray>(&value);
  return ints != nullptr && ints->empty();
}

}  // namespace

bool Metadata::Insert(std::string key, MetadataValue value) {
  return values_.emplace(std::move(key), std::move(value)).second;
}

const MetadataValue* Metadata::Find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

StatusOr<const MetadataValue*> Metadata::Get(std::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value != nullptr) return value;
  return absl::NotFoundError(
      absl::StrFormat("metadata key %s is missing", key));
}

StatusOr<int64_t> Metadata::GetInt(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, Get(key));
  if (const int64_t* number = std::get_if<int64_t>(value)) return *number;
  if (const uint64_t* large = std::get_if<uint64_t>(value)) {
    if (std::in_range<int64_t>(*large)) return static_cast<int64_t>(*large);
    return absl::InvalidArgumentError(
        absl::StrFormat("metadata key %s is %d, expected at most %d", key,
                        *large, std::numeric_limits<int64_t>::max()));
  }
  return WrongKind(key, *value, "an integer");
}

StatusOr<double> Metadata::GetFloat(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, Get(key));
  if (const double* number = std::get_if<double>(value)) return *number;
  if (const int64_t* number = std::get_if<int64_t>(value))
    return static_cast<double>(*number);
  if (const uint64_t* number = std::get_if<uint64_t>(value))
    return static_cast<double>(*number);
  return WrongKind(key, *value, "a number");
}

StatusOr<bool> Metadata::GetBool(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, Get(key));
  if (const bool* flag = std::get_if<bool>(value)) return *flag;
  return WrongKind(key, *value, "a bool");
}

StatusOr<std::string> Metadata::GetString(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, Get(key));
  if (const std::string* text = std::get_if<std::string>(value)) return *text;
  return WrongKind(key, *value, "a string");
}

StatusOr<int64_t> Metadata::GetIntOr(std::string_view key,
                                     int64_t fallback) const {
  if (!Has(key)) return fallback;
  return GetInt(key);
}

StatusOr<double> Metadata::GetFloatOr(std::string_view key,
                                      double fallback) const {
  if (!Has(key)) return fallback;
  return GetFloat(key);
}

StatusOr<bool> Metadata::GetBoolOr(std::string_view key, bool fallback) const {
  if (!Has(key)) return fallback;
  return GetBool(key);
}

StatusOr<std::string> Metadata::GetStringOr(std::string_view key,
                                            std::string_view fallback) const {
  if (!Has(key)) return std::string(fallback);
  return GetString(key);
}

StatusOr<const StringArray*> Metadata::GetStrings(std::string_view key) const {
  static const StringArray* const kNone = new StringArray();
  ASSIGN_OR_RETURN(const MetadataValue* value, Get(key));
  if (const StringArray* strings = std::get_if<StringArray>(value))
    return strings;
  if (IsEmptyArray(*value)) return kNone;
  return WrongKind(key, *value, "an array of strings");
}

StatusOr<const IntArray*> Metadata::GetInts(std::string_view key) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, Get(key));
  if (const IntArray* ints = std::get_if<IntArray>(value)) return ints;
  return WrongKind(key, *value, "an array of integers");
}

StatusOr<const FloatArray*> Metadata::GetFloats(std::string_view key) const {
  static const FloatArray* const kNone = new FloatArray();
  ASSIGN_OR_RETURN(const MetadataValue* value, Get(key));
  if (const FloatArray* floats = std::get_if<FloatArray>(value)) return floats;
  if (IsEmptyArray(*value)) return kNone;
  return WrongKind(key, *value, "an array of floats");
}

StatusOr<IntArray> Metadata::GetPerLayerInts(std::string_view key,
                                             int64_t layers) const {
  ASSIGN_OR_RETURN(const MetadataValue* value, Get(key));
  if (const IntArray* ints = std::get_if<IntArray>(value)) {
    if (std::cmp_equal(ints->size(), layers)) return *ints;
    return absl::InvalidArgumentError(absl::StrFormat(
        "metadata key %s has %d entries, expected one for each of %d layers",
        key, ints->size(), layers));
  }
  ASSIGN_OR_RETURN(const int64_t scalar, GetInt(key));
  return IntArray(static_cast<size_t>(layers), scalar);
}

uint64_t Metadata::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [key, value] : values_) {
    // A node of the map: three links and a colour, then key and value.
    bytes += sizeof(std::string) + key.capacity() + sizeof(MetadataValue) +
             4 * sizeof(void*);
    if (const auto* text = std::get_if<std::string>(&value))
      bytes += text->capacity();
    if (const auto* ints = std::get_if<IntArray>(&value))
      bytes += ints->capacity() * sizeof(int64_t);
    if (const auto* floats = std::get_if<FloatArray>(&value))
      bytes += floats->capacity() * sizeof(float);
    if (const auto* strings = std::get_if<StringArray>(&value))
      bytes += strings->memory_bytes();
  }
  return bytes;
}

}  // namespace coldstream
