// Text without white space at both ends, as Jinja's `trim` and Python's
// str.strip do it: all of Unicode's, and U+001C to U+001F.
//
// Source: Python's str.isspace (bidirectional WS, B or S, or category Zs).
#ifndef COLDSTREAM_RUNTIME_STRIP_SPACE_H_
#define COLDSTREAM_RUNTIME_STRIP_SPACE_H_

#include <string_view>

namespace coldstream {

// A part of `text`. Bytes that are not UTF-8 are not white space.
std::string_view StripSpace(std::string_view text);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_STRIP_SPACE_H_
