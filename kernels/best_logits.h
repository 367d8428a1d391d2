// The best tokens of a row of logits: all that greedy and top-k sampling need.
//
// The order is the sampler's: by value, then the lower id; -0 equals 0. What is
// not finite is left out: minus infinity rules a token out, and NaN and plus
// infinity are what PassOps::CheckFinite is for.
#ifndef COLDSTREAM_KERNELS_BEST_LOGITS_H_
#define COLDSTREAM_KERNELS_BEST_LOGITS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace coldstream {

struct LogitChoice {
  float logit = -std::numeric_limits<float>::infinity();
  int32_t id = -1;  // -1: none
};

// The most that are asked for of a row. Above, whole rows cross: past a few
// hundred a longer list costs a device more than it saves.
inline constexpr int64_t kMostChoices = 256;

// Of two choices {logit, id}; a total order, so that no result depends on an
// algorithm.
struct BetterChoice {
  template <typename Choice>
  bool operator()(const Choice& a, const Choice& b) const {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }
};

// Offers a choice to the `k` best so far, in no useful order: *best is a heap
// with the worst in front once it holds k, at least 1.
template <typename Choice>
void KeepBest(const Choice& choice, size_t k, std::vector<Choice>* best) {
  constexpr BetterChoice better;
  if (best->size() < k) {
    best->push_back(choice);
    if (best->size() == k) std::make_heap(best->begin(), best->end(), better);
  } else if (better(choice, best->front())) {
    std::pop_heap(best->begin(), best->end(), better);
    best->back() = choice;
    std::push_heap(best->begin(), best->end(), better);
  }
}

// best[0, k): the best of logits[0, n), best first, then LogitChoice{} where
// there are fewer.
void BestLogits(const float* logits, int64_t n, int64_t k, LogitChoice* best);

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_BEST_LOGITS_H_
