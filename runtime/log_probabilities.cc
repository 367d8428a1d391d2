#include "runtime/log_probabilities.h"

#include <algorithm>
#include <cmath>

namespace coldstream {
namespace {

std::vector<TokenProbability> BestOf(std::span<const float> logits,
                                     size_t count, double total) {
  std::vector<TokenId> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i);
  count = std::min(count, ids.size());
  std::partial_sort(ids.begin(), ids.begin() + static_cast<int64_t>(count),
                    ids.end(), [&](TokenId a, TokenId b) {
                      const float left = logits[static_cast<size_t>(a)];
                      const float right = logits[static_cast<size_t>(b)];
                      return left != right ? left > right : a < b;
                    });
  std::vector<TokenProbability> best;
  for (size_t i = 0; i < count; ++i) {
    const double logit = logits[static_cast<size_t>(ids[i])];
    best.push_back({ids[i], logit - total});
  }
  return best;
}

}  // namespace

double LogSumExp(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum);
}

std::vector<TokenProbability> BestTokens(std::span<const float> logits,
                                         size_t count) {
  return BestOf(logits, count, LogSumExp(logits));
}

TokenScore ScoreToken(std::span<const float> logits, TokenId token,
                      size_t best_count) {
  const double total = LogSumExp(logits);
  TokenScore score;
  score.token = {token, logits[static_cast<size_t>(token)] - total};
  if (best_count > 0) score.best = BestOf(logits, best_count, total);
  return score;
}

}  // namespace coldstream
