// The best tokens of a row of logits: all that greedy and top-k sampling need.
//
// The order is the sampler's: by value, then the lower id; -0 equals 0. What is
// not finite is left out: minus infinity rules a token out, and NaN and plus
// infinity are what PassOps::CheckFinite is for.
#ifndef COLDSTREAM_KERNELS_BEST_LOGITS_H_
#define COLDSTREAM_KERNELS_BEST_LOGITS_H_

#include <cstdint>
#include <limits>

namespace coldstream {

struct LogitChoice {
  float logit = -std::numeric_limits<float>::infinity();
  int32_t id = -1;  // -1: none
};

// The most that are asked for of a row. Above, whole rows cross: past a few
// hundred a longer list costs a device more than it saves.
inline constexpr int64_t kMostChoices = 256;

// best[0, k): the best of logits[0, n), best first, then LogitChoice{} where
// there are fewer.
void BestLogits(const float* logits, int64_t n, int64_t k, LogitChoice* best);

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_BEST_LOGITS_H_
