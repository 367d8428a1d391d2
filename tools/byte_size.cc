#include "tools/byte_size.h"

#include <array>
#include <cstddef>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

constexpr uint64_t kLimit = uint64_t{1} << 63;
// More fraction digits than this add nothing to a size below 2^63.
constexpr int kMaxFractionDigits = 9;

Status BadSize(std::string_view text, const char* why) {
  return absl::InvalidArgumentError(
      absl::StrFormat("'%s' is not a size: %s (expected e.g. 8G, 1536M, 512k, "
                      "or a number of bytes)",
                      std::string(text), why));
}

// log2 of the unit, or nullopt. "", "b", "k", "kb", "kib", ...
std::optional<int> UnitShift(std::string_view unit) {
  if (unit.empty()) return 0;
  std::string lower;
  for (const char c : unit)
    lower += absl::ascii_tolower(static_cast<unsigned char>(c));
  if (lower == "b") return 0;
  const size_t at = std::string_view("kmgt").find(lower[0]);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(lower).substr(1);
  if (!rest.empty() && rest != "b" && rest != "i" && rest != "ib")
    return std::nullopt;
  return 10 * (static_cast<int>(at) + 1);
}

size_t DigitsAt(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  return end - begin;
}

}  // namespace

StatusOr<uint64_t> ParseByteSize(std::string_view text) {
  const size_t whole_digits = DigitsAt(text, 0);
  if (whole_digits == 0) return BadSize(text, "it must begin with a digit");
  size_t at = whole_digits;
  size_t fraction_digits = 0;
  if (at < text.size() && text[at] == '.') {
    fraction_digits = DigitsAt(text, at + 1);
    if (fraction_digits == 0) return BadSize(text, "no digit after the point");
    if (fraction_digits > kMaxFractionDigits)
      return BadSize(text, "too many digits after the point");
    at += 1 + fraction_digits;
  }
  const std::optional<int> shift = UnitShift(text.substr(at));
  if (!shift) return BadSize(text, "unknown unit");
  if (fraction_digits > 0 && *shift == 0)
    return BadSize(text, "a fraction of a byte");

  const uint64_t limit = kLimit >> *shift;
  uint64_t whole = 0;
  for (const char c : text.substr(0, whole_digits)) {
    if (whole > limit / 10) return BadSize(text, "too large");
    whole = whole * 10 + static_cast<uint64_t>(c - '0');
  }
  if (whole >= limit) return BadSize(text, "too large");
  uint64_t fraction = 0;
  uint64_t fraction_unit = 1;
  for (const char c : text.substr(whole_digits + (fraction_digits > 0 ? 1 : 0),
                                  fraction_digits)) {
    fraction = fraction * 10 + static_cast<uint64_t>(c - '0');
    fraction_unit *= 10;
  }
  // Nine decimal digits times 2^40 does not fit 64 bits: long double (64-bit
  // mantissa) rounds down to at worst a byte less.
  const auto part =
      static_cast<uint64_t>(static_cast<long double>(fraction) /
                            static_cast<long double>(fraction_unit) *
                            static_cast<long double>(uint64_t{1} << *shift));
  return (whole << *shift) + part;
}

std::string FormatByteSize(uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return absl::StrFormat("%d B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.995 would print as 1024.00.
  while (value >= 1023.995 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.2f %s", value, kUnits[unit]);
}

}  // namespace coldstream
