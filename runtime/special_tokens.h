// Cuts text at the tokens that are matched as a whole, before any merging.
//
// User-defined tokens are always matched; control tokens only where
// SpecialTokens::kParse asks for it. The match that starts first wins, and of
// those the longest. No match reaches from one region of the text into another.
// The texts are kept sorted, which serves as a trie: a step over one byte of
// text narrows a range by binary search.
//
//   Text "a<|x|>b" with control token <|x|> = 7, kParse: "a", 7, "b".
// Thread-safety: const methods may be called from several threads.
#ifndef COLDSTREAM_RUNTIME_SPECIAL_TOKENS_H_
#define COLDSTREAM_RUNTIME_SPECIAL_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/token_table.h"
#include "runtime/tokenizer.h"

namespace coldstream {

class SpecialTokenSplitter {
 public:
  struct Entry {
    TokenId id = 0;
    bool always = false;  // user-defined
  };
  struct Fragment {
    std::string_view text;  // of the token too
    TokenId token = -1;     // -1: ordinary text
  };

  // Text up to `end`, from where the region before it ends.
  struct Region {
    size_t end = 0;
    SpecialTokens special = SpecialTokens::kAsText;
  };

  SpecialTokenSplitter() = default;
  // Texts are `table`'s; empty ones never match. Of equal texts one that is
  // always matched wins, then the lowest id.
  SpecialTokenSplitter(const TokenTable& table, std::vector<Entry> entries);

  // Calls `use` with the fragments of `text` in order; ordinary text is never
  // empty, and goes on over the ends of regions. `table` is the constructor's;
  // the last region ends where `text` does.
  void Split(const TokenTable& table, std::string_view text,
             std::span<const Region> regions,
             absl::FunctionRef<void(const Fragment&)> use) const;

  uint64_t memory_bytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  // The entry to take at `pos`, or nullptr.
  const Entry* LongestAt(const TokenTable& table, std::string_view text,
                         size_t pos, SpecialTokens special) const;

  std::vector<Entry> entries_;  // by text
  // Entries whose first byte is b: [first_[b], first_[b + 1]).
  std::array<uint32_t, 257> first_{};
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_SPECIAL_TOKENS_H_
