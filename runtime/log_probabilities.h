// Log-probabilities of tokens from a row of logits, in double.
#ifndef COLDSTREAM_RUNTIME_LOG_PROBABILITIES_H_
#define COLDSTREAM_RUNTIME_LOG_PROBABILITIES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/tokenizer.h"

namespace coldstream {

// log(sum(exp(logits))); logits: at least one, finite.
double LogSumExp(std::span<const float> logits);

struct TokenProbability {
  TokenId id = 0;
  double log_probability = 0;
};

// The `count` best, best first, lower ids first among equals; all if there are
// fewer.
std::vector<TokenProbability> BestTokens(std::span<const float> logits,
                                         size_t count);

// What a model held a token for, and the tokens it held best in its place.
struct TokenScore {
  TokenProbability token;
  std::vector<TokenProbability> best;
};
TokenScore ScoreToken(std::span<const float> logits, TokenId token,
                      size_t best_count);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_LOG_PROBABILITIES_H_
