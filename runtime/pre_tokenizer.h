// Splits text into the words that BPE merges inside of, by a named rule.
//
// A rule is one or more regular expressions. Each stage cuts the pieces of the
// one before at its matches; text between matches is a piece too. Stages see a
// piece as if it were all there is, so a look-ahead does not see past its end.
// Pieces are matched one by one (nothing grows with the text but the output of
// `use`), and invalid UTF-8 is a piece of its own.
// Errors: an unknown or missing rule is InvalidArgument naming it, the known
// ones and --pre.
// Thread-safety: const methods may be called from several threads.
// Source: the expressions are those of the models' published tokenizers; \s is
// spelled \p{WSpace} because PCRE2's \s holds U+180E, which theirs does not.
#ifndef COLDSTREAM_RUNTIME_PRE_TOKENIZER_H_
#define COLDSTREAM_RUNTIME_PRE_TOKENIZER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"

namespace coldstream {

// What a rule's name says about the tokenizer besides how it splits.
struct PreTokenizerRule {
  std::string_view name;                   // the canonical one
  std::array<std::string_view, 4> stages;  // empty past the last
  bool ignore_merges = false;  // a word in the vocabulary is taken as it is
  bool add_bos = false;        // where the file does not say
  bool normalize_nfc = false;  // text is composed (NFC) before it is split
};

class PreTokenizer {
  class Stage;
  class Matcher;

 public:
  // `name`: a rule's name or an alias of it.
  static StatusOr<PreTokenizer> Create(std::string_view name);

  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  const PreTokenizerRule& rule() const { return *rule_; }

  // What matching writes to, its own stack included: made once for many calls
  // of Split, which are then cheap. Lifetime: within the PreTokenizer's.
  class Scratch {
   public:
    explicit Scratch(const PreTokenizer& pre);
    Scratch(Scratch&&) noexcept;
    ~Scratch();

   private:
    friend class PreTokenizer;
    std::unique_ptr<Matcher> matcher_;
  };

  // Calls `use` with the pieces of `text` in order; together they are `text`.
  void Split(std::string_view text, Scratch* scratch,
             absl::FunctionRef<void(std::string_view)> use) const;

  // What the compiled expressions take, machine code included.
  uint64_t memory_bytes() const;

 private:
  explicit PreTokenizer(const PreTokenizerRule* rule);

  void SplitStage(size_t stage, std::string_view piece, Matcher* matcher,
                  absl::FunctionRef<void(std::string_view)> use) const;

  const PreTokenizerRule* rule_;
  std::vector<Stage> stages_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_PRE_TOKENIZER_H_
