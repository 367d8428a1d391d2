// The byte <-> character map of byte-level BPE vocabularies.
//
// Such vocabularies spell every byte as one printable character: printable
// Latin-1 bytes as themselves, the other 68 as U+0100 onwards in byte order
// (space is U+0120, newline U+010A). ToByteLevel and FromByteLevel are inverse.
// Source: Radford et al. 2019 (GPT-2), its published byte encoder.
// Thread-safety: free functions over constant tables.
#ifndef COLDSTREAM_RUNTIME_BYTE_LEVEL_H_
#define COLDSTREAM_RUNTIME_BYTE_LEVEL_H_

#include <string>
#include <string_view>

namespace coldstream {

// Bytes spelled as characters.
std::string ToByteLevel(std::string_view bytes);

// Appends the bytes that `text` spells. False, and nothing appended, where a
// character is outside the map: the text is then no byte-level spelling.
bool FromByteLevel(std::string_view text, std::string* bytes);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_BYTE_LEVEL_H_
