// Tables of canonical decomposition and combining classes; nfc_tables.cc is
// written by make_nfc_tables.py. Hangul syllables are computed, not listed.
#ifndef COLDSTREAM_RUNTIME_NFC_TABLES_H_
#define COLDSTREAM_RUNTIME_NFC_TABLES_H_

#include <cstdint>
#include <span>

namespace coldstream {

struct CombiningRange {
  uint32_t first, last;  // code points, both included
  uint8_t combining_class;
};

// `code` is `first` then `second`, one step; second is 0 for a singleton.
struct Decomposition {
  uint32_t code, first, second;
};

std::span<const CombiningRange> CombiningRanges();   // by code, disjoint
std::span<const Decomposition> Decompositions();     // by code
std::span<const Decomposition> PrimaryComposites();  // by (first, second)
std::span<const uint32_t> ComposingSeconds();        // by code

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_NFC_TABLES_H_
