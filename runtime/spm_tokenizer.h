// SentencePiece vocabularies with scores ("llama" in GGUF): characters merge
// into the neighbouring pair of highest score whose text is a token.
//
// Spaces are U+2581 in such vocabularies; inside here token texts hold real
// spaces, and U+2581 in input means a space, as it does in the reference.
// add_space_prefix puts one space in front of the text, not after special
// tokens inside it: "<x>a" is <x>, "a" (as Hugging Face's `legacy=False`; the
// reference has no notion of special tokens in text). DecodeAll takes that
// space away again, also behind a leading BOS.
// A character without a token becomes its bytes' tokens (byte fallback), else
// the unknown token, once for a run of such characters.
// Errors: NotFound or InvalidArgument naming the metadata key.
// Thread-safety: const methods may be called from several threads.
// Source: Kudo and Richardson 2018; github.com/google/sentencepiece, bpe model.
#ifndef COLDSTREAM_RUNTIME_SPM_TOKENIZER_H_
#define COLDSTREAM_RUNTIME_SPM_TOKENIZER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/metadata.h"
#include "runtime/pair_merge.h"
#include "runtime/vocabulary.h"

namespace coldstream {

class SpmTokenizer : public VocabularyTokenizer {
 public:
  static StatusOr<std::unique_ptr<Tokenizer>> Create(
      const Metadata& metadata, const TokenizerOptions& options);

  std::string DecodeAll(const std::vector<TokenId>& ids) const override;
  std::string description() const override { return "llama"; }
  uint64_t memory_bytes() const override;

 protected:
  std::vector<TokenId> EncodeRegions(std::string_view text,
                                     Regions regions) const override;

 private:
  class Unmerged;

  SpmTokenizer(Vocabulary vocabulary, bool add_space_prefix);

  Status ReadTokens(const StringArray& texts);
  Status ReadScores(const FloatArray& scores);

  // `text` has spaces for U+2581.
  void EncodeFragment(std::string_view text, std::vector<TokenId>* ids) const;
  void Emit(std::string_view text, TokenId id, const Unmerged& unmerged,
            std::vector<TokenId>* ids) const;
  void EmitBytes(std::string_view text, std::vector<TokenId>* ids) const;

  bool add_space_prefix_;
  std::vector<uint32_t> priorities_;  // by id; the higher the score, the lower
  std::array<TokenId, 256> byte_ids_{};  // kNotFound: no such token
  size_t longest_ = 0;                   // token that merging can give, bytes
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_SPM_TOKENIZER_H_
