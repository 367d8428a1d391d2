#include "runtime/strip_space.h"

#include <cstddef>

#include "runtime/utf8.h"

namespace coldstream {
namespace {

bool IsSpace(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

// Where the character that ends before `end` begins.
size_t BeginOfLast(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (text[begin] & '\xC0') == '\x80')
    --begin;
  return begin;
}

}  // namespace

std::string_view StripSpace(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char first = DecodeUtf8(text, 0);
    if (!first.valid || !IsSpace(first.code)) break;
    text.remove_prefix(first.length);
  }
  while (!text.empty()) {
    const size_t begin = BeginOfLast(text, text.size());
    const Utf8Char last = DecodeUtf8(text, begin);
    if (!last.valid || begin + last.length != text.size() ||
        !IsSpace(last.code))
      break;
    text = text.substr(0, begin);
  }
  return text;
}

}  // namespace coldstream
