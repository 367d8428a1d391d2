#include "runtime/prompt_tokens.h"

namespace coldstream {

std::vector<TokenId> PromptTokens(const Tokenizer& tokenizer,
                                  std::string_view text,
                                  SpecialTokens special) {
  std::vector<TokenId> ids = tokenizer.Encode(text, special);
  if (tokenizer.add_bos() && tokenizer.bos().has_value() &&
      (ids.empty() || ids.front() != *tokenizer.bos()))
    ids.insert(ids.begin(), *tokenizer.bos());
  return ids;
}

std::vector<TokenId> EmbeddingTokens(const Tokenizer& tokenizer,
                                     std::string_view text,
                                     SpecialTokens special) {
  std::vector<TokenId> ids = PromptTokens(tokenizer, text, special);
  if (tokenizer.add_eos() && tokenizer.eos().has_value() &&
      (ids.empty() || ids.back() != *tokenizer.eos()))
    ids.push_back(*tokenizer.eos());
  return ids;
}

}  // namespace coldstream
