#include "runtime/special_tokens.h"

#include <algorithm>
#include <utility>

namespace coldstream {
namespace {

uint8_t ByteAt(std::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

}  // namespace

SpecialTokenSplitter::SpecialTokenSplitter(const TokenTable& table,
                                           std::vector<Entry> entries)
    : entries_(std::move(entries)) {
  std::erase_if(entries_,
                [&](const Entry& e) { return table.Text(e.id).empty(); });
  std::sort(entries_.begin(), entries_.end(),
            [&](const Entry& a, const Entry& b) {
              const int order = table.Text(a.id).compare(table.Text(b.id));
              if (order != 0) return order < 0;
              return a.always != b.always ? a.always : a.id < b.id;
            });
  const auto last = std::unique(entries_.begin(), entries_.end(),
                                [&](const Entry& a, const Entry& b) {
                                  return table.Text(a.id) == table.Text(b.id);
                                });
  entries_.erase(last, entries_.end());
  entries_.shrink_to_fit();
  for (const Entry& e : entries_) ++first_[ByteAt(table.Text(e.id), 0) + 1u];
  for (size_t b = 1; b < first_.size(); ++b) first_[b] += first_[b - 1];
}

void SpecialTokenSplitter::Split(
    const TokenTable& table, std::string_view text,
    std::span<const Region> regions,
    absl::FunctionRef<void(const Fragment&)> use) const {
  size_t begin = 0;  // of the ordinary text not yet given out
  size_t pos = 0;
  for (const Region& region : regions) {
    const std::string_view seen = text.substr(0, region.end);
    while (pos < seen.size() && !entries_.empty()) {
      const Entry* entry = LongestAt(table, seen, pos, region.special);
      if (entry == nullptr) {
        ++pos;
        continue;
      }
      if (pos > begin) use({text.substr(begin, pos - begin), -1});
      const size_t length = table.Text(entry->id).size();
      use({text.substr(pos, length), entry->id});
      pos += length;
      begin = pos;
    }
  }
  if (begin < text.size()) use({text.substr(begin), -1});
}

const SpecialTokenSplitter::Entry* SpecialTokenSplitter::LongestAt(
    const TokenTable& table, std::string_view text, size_t pos,
    SpecialTokens special) const {
  const uint8_t head = ByteAt(text, pos);
  auto low = entries_.begin() + first_[head];
  auto high = entries_.begin() + first_[head + 1u];
  const Entry* best = nullptr;
  // All of [low, high) share `depth` bytes with the text at pos.
  for (size_t depth = 1; low != high; ++depth) {
    if (table.Text(low->id).size() == depth) {  // the shortest sorts first
      if (low->always || special == SpecialTokens::kParse) best = &*low;
      ++low;
    }
    if (pos + depth >= text.size()) break;
    const uint8_t next = ByteAt(text, pos + depth);
    low = std::partition_point(low, high, [&](const Entry& e) {
      return ByteAt(table.Text(e.id), depth) < next;
    });
    high = std::partition_point(low, high, [&](const Entry& e) {
      return ByteAt(table.Text(e.id), depth) == next;
    });
  }
  return best;
}

}  // namespace coldstream
