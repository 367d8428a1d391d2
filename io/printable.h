// Text from outside made fit for one line of a message or a table.
//
// Control characters, backslashes and bytes that are not UTF-8 become escapes
// (\n, \t, \x1b); well-formed UTF-8 stays. At most `max_chars` bytes come out,
// never cut inside a character or an escape; "..." marks a cut.
#ifndef COLDSTREAM_IO_PRINTABLE_H_
#define COLDSTREAM_IO_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace coldstream {

std::string Printable(std::string_view text, size_t max_chars);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_PRINTABLE_H_
