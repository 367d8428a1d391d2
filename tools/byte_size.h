// Sizes as people write them on a command line: "8G", "1536M", "4GiB", "512k".
//
// Units are binary whatever the spelling (k, kb, kib = 1024; then m, g, t; case
// ignored), as docker and memory control groups read them; no unit means bytes.
// A fraction is allowed with a unit: "1.5G". Nothing may surround the number.
#ifndef COLDSTREAM_TOOLS_BYTE_SIZE_H_
#define COLDSTREAM_TOOLS_BYTE_SIZE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace coldstream {

// Bytes of `text`. InvalidArgument, quoting it: not a number, a sign, an
// unknown unit, a fraction of a byte, 2^63 or more.
StatusOr<uint64_t> ParseByteSize(std::string_view text);

// For people, three digits or more: "0 B", "512 B", "1.50 KiB", "4.58 GiB".
std::string FormatByteSize(uint64_t bytes);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BYTE_SIZE_H_
