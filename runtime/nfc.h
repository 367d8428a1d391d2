// Unicode composition (normalization form C), which some byte-level BPE
// vocabularies were trained behind: "e" + U+0301 becomes U+00E9.
//
// Bytes that are not valid UTF-8 stay as they are and join nothing. Linear in
// the text but for sorting runs of combining marks; no recursion on its length.
// Thread-safety: free functions over constant tables.
// Source: Unicode Standard Annex 15; chapter 3.12 for Hangul.
#ifndef COLDSTREAM_RUNTIME_NFC_H_
#define COLDSTREAM_RUNTIME_NFC_H_

#include <string>
#include <string_view>

namespace coldstream {

// True only if NormalizeNfc would change nothing; cheap. May be false for text
// that is in the form already (it holds marks that could compose).
bool IsCertainlyNfc(std::string_view text);

std::string NormalizeNfc(std::string_view text);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_NFC_H_
