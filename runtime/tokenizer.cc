#include "runtime/tokenizer.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "runtime/bpe_tokenizer.h"
#include "runtime/spm_tokenizer.h"

namespace coldstream {

StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(
    const Metadata& metadata, const TokenizerOptions& options) {
  ASSIGN_OR_RETURN(const std::string model,
                   metadata.GetString("tokenizer.ggml.model"));
  if (model == "gpt2") return BpeTokenizer::Create(metadata, options);
  if (model == "llama") return SpmTokenizer::Create(metadata, options);
  return absl::InvalidArgumentError(absl::StrFormat(
      "tokenizer.ggml.model is \"%s\"; known: gpt2 (byte-level BPE), llama "
      "(SentencePiece)",
      model));
}

bool Tokenizer::IsEndOfGeneration(TokenId id) const {
  const std::vector<TokenId>& ends = end_of_generation();
  return std::find(ends.begin(), ends.end(), id) != ends.end();
}

}  // namespace coldstream
