// FormatMetadataValue: metadata for people (inspect, error messages).
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/strings/str_format.h"
#include "io/metadata.h"
#include "io/printable.h"

namespace coldstream {
namespace {

std::string FormatEntry(int64_t value) { return absl::StrFormat("%d", value); }
std::string FormatEntry(float value) { return absl::StrFormat("%g", value); }
std::string FormatEntry(std::string_view value) {
  constexpr size_t kMostPerEntry = 64;
  return absl::StrFormat("\"%s\"", Printable(value, kMostPerEntry));
}

// "[1, 2, 3]", or "[1, 2, ... 5000 entries]" where that would be too long.
template <typename Array>
std::string FormatArray(const Array& array, size_t max_chars) {
  std::string text = "[";
  const std::string tail = absl::StrFormat("... %d entries]", array.size());
  for (size_t i = 0; i < array.size(); ++i) {
    const bool last = i + 1 == array.size();
    const std::string entry = FormatEntry(array[i]) + (last ? "]" : ", ");
    const size_t reserved = last ? 0 : tail.size();
    if (text.size() + entry.size() + reserved > max_chars) return text + tail;
    text += entry;
  }
  return array.size() == 0 ? "[]" : text;
}

}  // namespace

std::string FormatMetadataValue(const MetadataValue& value, size_t max_chars) {
  struct Visitor {
    size_t max_chars;
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(int64_t number) const { return FormatEntry(number); }
    std::string operator()(uint64_t number) const {
      return absl::StrFormat("%d", number);
    }
    std::string operator()(double number) const {
      return absl::StrFormat("%.9g", number);
    }
    std::string operator()(const std::string& text) const {
      return Printable(text, max_chars);
    }
    std::string operator()(const IntArray& array) const {
      return FormatArray(array, max_chars);
    }
    std::string operator()(const FloatArray& array) const {
      return FormatArray(array, max_chars);
    }
    std::string operator()(const StringArray& array) const {
      return FormatArray(array, max_chars);
    }
  };
  // Cuts again what is too long even so (an absurdly small limit).
  std::string text = std::visit(Visitor{max_chars}, value);
  if (text.size() > max_chars) text = Printable(text, max_chars);
  return text;
}

}  // namespace coldstream
