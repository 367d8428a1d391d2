// Scores of tokens in the two forms that OpenAI's answers have them.
//
// Log-probabilities come with a float's digits; minus infinity, which JSON does
// not have, is -9999. The best tokens are joined by the one that was taken.
// Source: OpenAI API reference, "The completion object" (logprobs), "The chat
// completion object" (choices, logprobs).
#ifndef COLDSTREAM_TOOLS_BATCH_LOGPROBS_H_
#define COLDSTREAM_TOOLS_BATCH_LOGPROBS_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/log_probabilities.h"
#include "runtime/tokenizer.h"

namespace coldstream {

// A token of the answer; the first of a prompt has no score.
struct ScoredToken {
  TokenId id = 0;
  std::optional<TokenScore> score = {};
};

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}: offsets are in
// characters of `text`, where control tokens take no room. A token that is not
// whole characters is written "bytes:\xe2\x82".
nlohmann::ordered_json CompletionLogprobs(
    const std::vector<ScoredToken>& tokens, std::string_view text,
    const Tokenizer& tokenizer);

// {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal": null}
nlohmann::ordered_json ChatLogprobs(const std::vector<TokenScore>& scores,
                                    const Tokenizer& tokenizer);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_LOGPROBS_H_
