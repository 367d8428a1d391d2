// UTF-8 as the tokenizers need it: walk over characters, and find the parts of
// arbitrary bytes that are valid.
//
// Valid means RFC 3629: shortest form, no surrogates, at most U+10FFFF. Every
// byte that is not part of a valid sequence stands alone, length 1.
// Thread-safety: free functions without state.
#ifndef COLDSTREAM_RUNTIME_UTF8_H_
#define COLDSTREAM_RUNTIME_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace coldstream {

struct Utf8Char {
  char32_t code = 0;  // the raw byte where !valid
  size_t length = 1;  // bytes
  bool valid = false;
};

// The character at `pos`, which must be inside `text`.
Utf8Char DecodeUtf8(std::string_view text, size_t pos);

// Bytes from the start of `text` that are valid UTF-8.
size_t ValidUtf8Prefix(std::string_view text);

// code must be at most U+10FFFF.
void AppendUtf8(char32_t code, std::string* out);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_UTF8_H_
