#include "io/printable.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

// Bytes of the well-formed UTF-8 character at the start of `text`, 0 if there
// is none. Source: Unicode standard, table 3-7.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  size_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  if (length == 0 || text.size() < length) return 0;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  return length;
}

std::string Escape(char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\\':
      return "\\\\";
    default:
      return absl::StrFormat("\\x%02x", static_cast<uint8_t>(c));
  }
}

}  // namespace

std::string Printable(std::string_view text, size_t max_chars) {
  constexpr std::string_view kCut = "...";
  std::string out;
  size_t cut_at = 0;  // the longest prefix of `out` that leaves room for kCut
  while (!text.empty()) {
    const size_t length = CharacterBytes(text);
    const bool control = static_cast<uint8_t>(text[0]) < 0x20 ||
                         text[0] == '\\' || text[0] == 0x7F ||
                         (length == 2 && text[0] == '\xC2' &&
                          static_cast<uint8_t>(text[1]) < 0xA0);
    if (length == 0 || control) {
      out += Escape(text[0]);
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
    if (out.size() > max_chars) {
      out.resize(cut_at);
      return out.append(kCut.substr(0, max_chars - cut_at));
    }
    if (out.size() + kCut.size() <= max_chars) cut_at = out.size();
  }
  return out;
}

}  // namespace coldstream
