#include "runtime/nfc.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "runtime/nfc_tables.h"
#include "runtime/utf8.h"

namespace coldstream {
namespace {

// Hangul syllables are l, v, t counted in mixed radix from kSyllables.
constexpr uint32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161,
                   kTrails = 0x11A7;  // the trail 0 is "none"
constexpr uint32_t kLeadCount = 19, kVowelCount = 21, kTrailCount = 28;
constexpr uint32_t kSyllableCount = kLeadCount * kVowelCount * kTrailCount;

constexpr uint32_t kFirstMark = 0x300;  // nothing below composes or reorders

// Marks a byte that is not UTF-8; no table holds such a code.
constexpr uint32_t kRawByte = 0x80000000u;

struct Element {
  uint32_t code;
  uint8_t combining_class;
};

uint8_t CombiningClass(uint32_t code) {
  if (code < kFirstMark) return 0;
  const auto ranges = CombiningRanges();
  const auto it = std::partition_point(
      ranges.begin(), ranges.end(),
      [&](const CombiningRange& range) { return range.last < code; });
  return it != ranges.end() && it->first <= code ? it->combining_class
                                                 : uint8_t{0};
}

const Decomposition* FindDecomposition(uint32_t code) {
  const auto rows = Decompositions();
  const auto it = std::partition_point(
      rows.begin(), rows.end(),
      [&](const Decomposition& row) { return row.code < code; });
  return it != rows.end() && it->code == code ? &*it : nullptr;
}

const Decomposition* FindComposite(uint32_t first, uint32_t second) {
  const auto key = std::tuple(first, second);
  const auto rows = PrimaryComposites();
  const auto it = std::partition_point(
      rows.begin(), rows.end(), [&](const Decomposition& row) {
        return std::tuple(row.first, row.second) < key;
      });
  return it != rows.end() && std::tuple(it->first, it->second) == key ? &*it
                                                                      : nullptr;
}

bool IsHangulVowelOrTrail(uint32_t code) {
  return code - kVowels < kVowelCount ||
         (code > kTrails && code < kTrails + kTrailCount);
}

// Can change under normalization, by itself or with what comes before.
bool MayChange(uint32_t code) {
  if (code < kFirstMark) return false;
  if (CombiningClass(code) != 0 || IsHangulVowelOrTrail(code)) return true;
  const auto seconds = ComposingSeconds();
  if (std::binary_search(seconds.begin(), seconds.end(), code)) return true;
  const Decomposition* row = FindDecomposition(code);
  if (row == nullptr) return false;
  const Decomposition* composite = FindComposite(row->first, row->second);
  return composite == nullptr || composite->code != code;
}

void AppendDecomposed(uint32_t code, std::vector<Element>* out) {
  if (const uint32_t index = code - kSyllables; index < kSyllableCount) {
    const uint32_t trail = index % kTrailCount;
    const uint32_t vowel = index / kTrailCount % kVowelCount;
    out->push_back({kLeads + index / kTrailCount / kVowelCount, 0});
    out->push_back({kVowels + vowel, 0});
    if (trail != 0) out->push_back({kTrails + trail, 0});
    return;
  }
  // The second of a pair never decomposes further but for a few marks; the
  // first does, at most three deep: recursion is bounded by the tables.
  const Decomposition* row = FindDecomposition(code);
  if (row == nullptr) {
    out->push_back({code, CombiningClass(code)});
    return;
  }
  AppendDecomposed(row->first, out);
  if (row->second != 0) AppendDecomposed(row->second, out);
}

// 0: the two do not compose.
uint32_t Compose(uint32_t first, uint32_t second) {
  const uint32_t lead = first - kLeads;
  const uint32_t vowel = second - kVowels;
  if (lead < kLeadCount && vowel < kVowelCount) {
    return kSyllables + (lead * kVowelCount + vowel) * kTrailCount;
  }
  const uint32_t syllable = first - kSyllables;
  if (syllable < kSyllableCount && syllable % kTrailCount == 0 &&
      second > kTrails && second < kTrails + kTrailCount) {
    return first + (second - kTrails);
  }
  const Decomposition* row = FindComposite(first, second);
  return row == nullptr ? 0 : row->code;
}

// Each run of marks sorted by class, equal classes in their old order.
void SortMarks(std::vector<Element>* elements) {
  const auto is_starter = [](const Element& e) {
    return e.combining_class == 0;
  };
  auto it = elements->begin();
  while (it != elements->end()) {
    const auto begin = std::find_if_not(it, elements->end(), is_starter);
    it = std::find_if(begin, elements->end(), is_starter);
    std::stable_sort(begin, it, [](const Element& a, const Element& b) {
      return a.combining_class < b.combining_class;
    });
  }
}

// Joins elements to the last starter where nothing in between blocks them.
void ComposeInPlace(std::vector<Element>* elements) {
  constexpr size_t kNoStarter = SIZE_MAX;
  size_t starter = kNoStarter;
  size_t kept = 0;
  for (const Element e : *elements) {
    if (starter != kNoStarter) {
      const bool adjacent = starter + 1 == kept;
      const uint8_t before = (*elements)[kept - 1].combining_class;
      if (adjacent || before < e.combining_class) {
        const uint32_t code = Compose((*elements)[starter].code, e.code);
        if (code != 0) {
          (*elements)[starter].code = code;
          continue;
        }
      }
    }
    if (e.combining_class == 0) starter = kept;
    (*elements)[kept++] = e;
  }
  elements->resize(kept);
}

}  // namespace

bool IsCertainlyNfc(std::string_view text) {
  for (size_t pos = 0; pos < text.size();) {
    if (static_cast<uint8_t>(text[pos]) < 0xCC) {  // below U+0300, or invalid
      ++pos;
      continue;
    }
    const Utf8Char c = DecodeUtf8(text, pos);
    if (c.valid && MayChange(c.code)) return false;
    pos += c.length;
  }
  return true;
}

std::string NormalizeNfc(std::string_view text) {
  std::vector<Element> elements;
  elements.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    if (c.valid) {
      AppendDecomposed(c.code, &elements);
    } else {
      elements.push_back({kRawByte | c.code, 0});
    }
    pos += c.length;
  }
  SortMarks(&elements);
  ComposeInPlace(&elements);
  std::string out;
  out.reserve(text.size());
  for (const Element& e : elements) {
    if (e.code & kRawByte) {
      out.push_back(static_cast<char>(static_cast<uint8_t>(e.code)));
    } else {
      AppendUtf8(e.code, &out);
    }
  }
  return out;
}

}  // namespace coldstream
