// A prompt's text as the model wants it.
#ifndef COLDSTREAM_RUNTIME_PROMPT_TOKENS_H_
#define COLDSTREAM_RUNTIME_PROMPT_TOKENS_H_

#include <string_view>
#include <vector>

#include "runtime/tokenizer.h"

namespace coldstream {

// Ids of `text`, with BOS in front if the model adds one and the text does not
// begin with it (it can where control tokens are parsed).
std::vector<TokenId> PromptTokens(const Tokenizer& tokenizer,
                                  std::string_view text, SpecialTokens special);

// The same for a text that is embedded: with EOS behind it, too, if the model
// adds one, because a model that does so is trained to sum the text up there.
std::vector<TokenId> EmbeddingTokens(const Tokenizer& tokenizer,
                                     std::string_view text,
                                     SpecialTokens special);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_PROMPT_TOKENS_H_
