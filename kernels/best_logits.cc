#include "kernels/best_logits.h"

#include <cmath>

namespace coldstream {

void BestLogits(const float* logits, int64_t n, int64_t k, LogitChoice* best) {
  std::vector<LogitChoice> kept;
  kept.reserve(static_cast<size_t>(k));
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(logits[i])) continue;
    KeepBest({logits[i], static_cast<int32_t>(i)}, static_cast<size_t>(k),
             &kept);
  }
  std::sort(kept.begin(), kept.end(), BetterChoice());
  LogitChoice* const end = std::copy(kept.begin(), kept.end(), best);
  std::fill(end, best + k, LogitChoice{});
}

}  // namespace coldstream
