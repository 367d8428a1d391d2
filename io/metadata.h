// Key-value metadata of a checkpoint, as GGUF carries it.
//
// Arrays of strings (a vocabulary, its merges) are one blob with offsets: a
// 150k-token vocabulary costs its bytes, not 150k heap blocks.
#ifndef COLDSTREAM_IO_METADATA_H_
#define COLDSTREAM_IO_METADATA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace coldstream {

class StringArray {
 public:
  void Reserve(size_t entries) { ends_.reserve(entries); }
  // Gives back what Append took ahead.
  void ShrinkToFit() { blob_.shrink_to_fit(); }
  void Append(std::string_view text) {
    blob_.append(text);
    ends_.push_back(blob_.size());
  }
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t index) const {
    const uint64_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(blob_).substr(begin, ends_[index] - begin);
  }
  friend bool operator==(const StringArray&, const StringArray&) = default;
  uint64_t memory_bytes() const {
    return blob_.capacity() + ends_.capacity() * sizeof(uint64_t);
  }

 private:
  std::string blob_;
  std::vector<uint64_t> ends_;
};

// Integers of every width are kept as int64_t or, above its range, uint64_t;
// both float widths as double. An empty array is kept as IntArray.
using IntArray = std::vector<int64_t>;
using FloatArray = std::vector<float>;
using MetadataValue = std::variant<bool, int64_t, uint64_t, double, std::string,
                                   IntArray, FloatArray, StringArray>;

class Metadata {
 public:
  // False if the key is there already.
  bool Insert(std::string key, MetadataValue value);
  const MetadataValue* Find(std::string_view key) const;
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  size_t size() const { return values_.size(); }
  const std::map<std::string, MetadataValue, std::less<>>& values() const {
    return values_;
  }

  // The value of `key` as the type asked for. Errors: NotFound if the key is
  // missing, InvalidArgument if its type or range does not fit; both name the
  // key. The *Or forms return `fallback` only where the key is missing.
  StatusOr<int64_t> GetInt(std::string_view key) const;
  StatusOr<double> GetFloat(std::string_view key) const;  // integers convert
  StatusOr<bool> GetBool(std::string_view key) const;
  StatusOr<std::string> GetString(std::string_view key) const;
  StatusOr<int64_t> GetIntOr(std::string_view key, int64_t fallback) const;
  StatusOr<double> GetFloatOr(std::string_view key, double fallback) const;
  StatusOr<bool> GetBoolOr(std::string_view key, bool fallback) const;
  StatusOr<std::string> GetStringOr(std::string_view key,
                                    std::string_view fallback) const;

  // Borrowed arrays. Lifetime: this object.
  StatusOr<const StringArray*> GetStrings(std::string_view key) const;
  StatusOr<const IntArray*> GetInts(std::string_view key) const;
  StatusOr<const FloatArray*> GetFloats(std::string_view key) const;

  // A per-layer value: a scalar stands for every layer, an array must have
  // exactly `layers` entries (InvalidArgument otherwise).
  StatusOr<IntArray> GetPerLayerInts(std::string_view key,
                                     int64_t layers) const;

  uint64_t memory_bytes() const;

 private:
  StatusOr<const MetadataValue*> Get(std::string_view key) const;

  std::map<std::string, MetadataValue, std::less<>> values_;
};

// One line of at most `max_chars`, for people: long arrays as their first
// entries and count, control characters escaped.
std::string FormatMetadataValue(const MetadataValue& value, size_t max_chars);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_METADATA_H_
