#include "tools/option_checks.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "absl/strings/str_format.h"
#include "tools/byte_size.h"

namespace coldstream {
namespace {

// All of `text`, or nothing.
template <typename Number>
std::optional<Number> ParseNumber(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

CLI::Validator IntegerIn(int64_t least, int64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        const std::optional<int64_t> value = ParseNumber<int64_t>(text);
        if (value && *value >= least && *value <= most) return "";
        return absl::StrFormat(
            "expected a whole number from %d to %d, got '%s'", least, most,
            text);
      },
      absl::StrFormat("%d..%d", least, most));
}

CLI::Validator SizeIn(uint64_t least, uint64_t most, uint64_t multiple) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        const StatusOr<uint64_t> bytes = ParseByteSize(text);
        if (!bytes.ok()) return MessageOf(bytes.status());
        if (*bytes < least || *bytes > most)
          return absl::StrFormat("expected a size from %s to %s, got '%s'",
                                 FormatByteSize(least), FormatByteSize(most),
                                 text);
        if (*bytes % multiple != 0)
          return absl::StrFormat("expected a multiple of %s, got '%s'",
                                 FormatByteSize(multiple), text);
        text = std::to_string(*bytes);
        return "";
      },
      "");
}

CLI::Validator PositiveNumber() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const std::optional<double> value = ParseNumber<double>(text);
        if (value && std::isfinite(*value) && *value > 0) return "";
        return absl::StrFormat("expected a number above 0, got '%s'", text);
      },
      "");
}

CLI::Validator NumberIn(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        const std::optional<double> value = ParseNumber<double>(text);
        // Not a number is in no range.
        if (value && *value >= least && *value <= most) return "";
        return absl::StrFormat("expected a number from %g to %g, got '%s'",
                               least, most, text);
      },
      absl::StrFormat("%g..%g", least, most));
}

CLI::Validator OneOfIntegers(const Choices<int64_t>& choices) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (!names.empty()) names += "|";
    names += name;
  }
  return CLI::Validator(
      [choices, names](std::string& text) -> std::string {
        for (const auto& [name, value] : choices) {
          if (text != name) continue;
          text = std::to_string(value);
          return "";
        }
        return absl::StrFormat("expected %s, got '%s'", names, text);
      },
      names);
}

}  // namespace coldstream
