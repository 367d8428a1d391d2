// What both tokenizer families take from a checkpoint's metadata: token types,
// the special ids, and whether BOS and EOS are added.
//
// Every id in here is inside the vocabulary. Absent keys: BOS, EOS, EOT, EOM
// have no id; types are all normal.
// Errors: NotFound or InvalidArgument naming the metadata key.
// Source: GGUF specification, section on tokenizer.ggml.*.
#ifndef COLDSTREAM_RUNTIME_VOCABULARY_H_
#define COLDSTREAM_RUNTIME_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/metadata.h"
#include "runtime/special_tokens.h"
#include "runtime/token_table.h"
#include "runtime/tokenizer.h"

namespace coldstream {

enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// What a family assumes where the file has no key.
struct FamilyDefaults {
  bool add_bos = false;
  std::optional<TokenId> bos, eos, unknown;
};

struct Vocabulary {
  // Reads everything but the tokens' texts; `texts` is only looked at.
  static StatusOr<Vocabulary> FromMetadata(const Metadata& metadata,
                                           const StringArray& texts,
                                           const FamilyDefaults& defaults);

  TokenType type(TokenId id) const { return types[static_cast<size_t>(id)]; }
  // Control and unknown tokens: shown, and found in text, only where asked.
  bool IsSpecial(TokenId id) const {
    return type(id) == TokenType::kControl || type(id) == TokenType::kUnknown;
  }
  bool Contains(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < types.size();
  }

  std::vector<TokenType> types;
  std::optional<TokenId> bos, eos, unknown;
  std::vector<TokenId> end_of_generation;  // ascending
  bool add_bos = false;
  bool add_eos = false;
};

// The part of Tokenizer that is the same for every family. Texts in `table_`
// are the bytes tokens stand for, ids [0, vocab_size) first.
class VocabularyTokenizer : public Tokenizer {
 public:
  std::vector<TokenId> Encode(std::string_view text,
                              SpecialTokens special) const override;
  std::vector<TokenId> EncodePieces(
      std::span<const TextPiece> pieces) const override;
  std::string Decode(TokenId id, bool with_special) const override;

  int64_t vocab_size() const override {
    return static_cast<int64_t>(vocabulary_.types.size());
  }
  std::optional<TokenId> bos() const override { return vocabulary_.bos; }
  bool add_bos() const override { return vocabulary_.add_bos; }
  std::optional<TokenId> eos() const override { return vocabulary_.eos; }
  bool add_eos() const override { return vocabulary_.add_eos; }
  const std::vector<TokenId>& end_of_generation() const override {
    return vocabulary_.end_of_generation;
  }

 protected:
  explicit VocabularyTokenizer(Vocabulary vocabulary)
      : vocabulary_(std::move(vocabulary)) {}

  using Regions = std::span<const SpecialTokenSplitter::Region>;
  virtual std::vector<TokenId> EncodeRegions(std::string_view text,
                                             Regions regions) const = 0;

  // Builds the splitter from the finished table.
  void FindSpecialTokens();
  uint64_t vocabulary_bytes() const;

  Vocabulary vocabulary_;
  TokenTable table_;
  SpecialTokenSplitter splitter_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_VOCABULARY_H_
