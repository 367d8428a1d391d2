// Byte-level byte pair encoding ("gpt2" in GGUF).
//
// Text is cut at special tokens, composed (NFC) where the rule says so, cut
// into words by the pre-tokenizer, and each word's bytes are merged by rank.
// Token texts are kept as the bytes they stand for. A symbol that is no token
// of the vocabulary (a merge through a text that is not listed, a byte without
// a token) gets an id past vocab_size inside; on the way out it becomes its
// bytes' tokens, else the unknown token, else nothing: also where the unknown
// token is a control token, which text must never turn into.
// Errors: NotFound or InvalidArgument naming the metadata key.
// Thread-safety: const methods may be called from several threads.
// Source: Sennrich et al. 2016; the byte-level form is GPT-2's.
#ifndef COLDSTREAM_RUNTIME_BPE_TOKENIZER_H_
#define COLDSTREAM_RUNTIME_BPE_TOKENIZER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "io/metadata.h"
#include "runtime/pair_merge.h"
#include "runtime/pre_tokenizer.h"
#include "runtime/vocabulary.h"

namespace coldstream {

class BpeTokenizer : public VocabularyTokenizer {
 public:
  static StatusOr<std::unique_ptr<Tokenizer>> Create(
      const Metadata& metadata, const TokenizerOptions& options);

  std::string DecodeAll(const std::vector<TokenId>& ids) const override;
  std::string description() const override;
  uint64_t memory_bytes() const override;

 protected:
  std::vector<TokenId> EncodeRegions(std::string_view text,
                                     Regions regions) const override;

 private:
  BpeTokenizer(Vocabulary vocabulary, PreTokenizer pre);

  Status ReadTokens(const StringArray& texts);
  Status ReadMerges(const StringArray& merges);
  // The id of a text as the file spells it, made up where it is no token.
  TokenId Intern(std::string_view spelled);

  std::optional<PairMerge> FindMerge(TokenId left, TokenId right) const;
  void EncodeWord(std::string_view word, PairMerger* merger,
                  std::vector<TokenId>* ids) const;
  void Emit(TokenId symbol, std::vector<TokenId>* ids) const;

  PreTokenizer pre_;
  std::array<TokenId, 256> byte_ids_{};
  std::optional<TokenId> unknown_;  // only where text may become it
  // (left << 32 | right) -> rank and merged id.
  absl::flat_hash_map<uint64_t, PairMerge> merges_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_BPE_TOKENIZER_H_
