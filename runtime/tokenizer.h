// Text to token ids and back, from a checkpoint's metadata.
//
// Families: byte-level BPE ("gpt2" in GGUF) with a named pre-tokenizer, and
// SentencePiece unigram-by-score merges ("llama"). Control tokens are found in
// text only where asked for, so user text never becomes one by accident.
// Thread-safety: const methods may be called from several threads.
#ifndef COLDSTREAM_RUNTIME_TOKENIZER_H_
#define COLDSTREAM_RUNTIME_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/metadata.h"

namespace coldstream {

using TokenId = int32_t;

enum class SpecialTokens {
  kAsText,  // "<|im_end|>" in the text is ordinary characters
  kParse,   // ... becomes the control token
};

// A stretch of a longer text, and what special tokens in it mean.
struct TextPiece {
  std::string_view text;
  SpecialTokens special = SpecialTokens::kAsText;
};

struct TokenizerOptions {
  // Overrides tokenizer.ggml.pre; empty: the file's own.
  std::string pre = {};
};

class Tokenizer {
 public:
  // Errors: NotFound or InvalidArgument naming the metadata key; an unknown or
  // missing pre-tokenizer is InvalidArgument that names it, the known ones and
  // the --pre option.
  static StatusOr<std::unique_ptr<Tokenizer>> Create(
      const Metadata& metadata, const TokenizerOptions& options = {});
  virtual ~Tokenizer() = default;

  // Ids of `text` without BOS or EOS. Any bytes are accepted: invalid UTF-8 is
  // encoded through byte tokens where the vocabulary has them. The ids decode
  // to `text` again, but for what the models were trained behind: qwen2 and
  // command-r compose characters (NFC), SentencePiece reads U+2581 as a space;
  // and bytes that a vocabulary has no token for.
  virtual std::vector<TokenId> Encode(std::string_view text,
                                      SpecialTokens special) const = 0;

  // Ids of the pieces put together, as if they were one text, but for special
  // tokens: each is found only inside of one piece, and there as that piece
  // says. So a chat's scaffolding becomes control tokens and what users wrote
  // never does, also where the two meet.
  virtual std::vector<TokenId> EncodePieces(
      std::span<const TextPiece> pieces) const = 0;

  // The bytes a token stands for in running text. Control tokens and ids
  // outside the vocabulary (padding rows) are empty unless with_special.
  virtual std::string Decode(TokenId id, bool with_special = false) const = 0;
  // A sequence; for SentencePiece the space that add_space_prefix put in front
  // is taken away again.
  virtual std::string DecodeAll(const std::vector<TokenId>& ids) const = 0;

  virtual int64_t vocab_size() const = 0;
  // Added before a prompt if the model says so (add_bos_token).
  virtual std::optional<TokenId> bos() const = 0;
  virtual bool add_bos() const = 0;
  virtual std::optional<TokenId> eos() const = 0;
  virtual bool add_eos() const = 0;
  // eos, eot, eom and whatever else ends a generation in this vocabulary.
  virtual const std::vector<TokenId>& end_of_generation() const = 0;
  bool IsEndOfGeneration(TokenId id) const;

  // "gpt2/llama-bpe", "llama": for inspect.
  virtual std::string description() const = 0;
  // Heap bytes this tokenizer holds, for the memory plan.
  virtual uint64_t memory_bytes() const = 0;
};

// The pre-tokenizer names --pre takes, "llama-bpe, qwen2, ...".
std::string KnownPreTokenizers();

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_TOKENIZER_H_
