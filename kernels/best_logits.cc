#include "kernels/best_logits.h"

#include <algorithm>
#include <cmath>

namespace coldstream {
namespace {

// A total order, so that the result does not depend on the algorithm.
bool Better(const LogitChoice& a, const LogitChoice& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

}  // namespace

// best[0, found) is a heap with the worst in front once it is full.
void BestLogits(const float* logits, int64_t n, int64_t k, LogitChoice* best) {
  int64_t found = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(logits[i])) continue;
    const LogitChoice choice = {logits[i], static_cast<int32_t>(i)};
    if (found < k) {
      best[found++] = choice;
      if (found == k) std::make_heap(best, best + k, Better);
    } else if (Better(choice, best[0])) {
      std::pop_heap(best, best + k, Better);
      best[k - 1] = choice;
      std::push_heap(best, best + k, Better);
    }
  }
  std::sort(best, best + found, Better);
  std::fill(best + found, best + k, LogitChoice{});
}

}  // namespace coldstream
