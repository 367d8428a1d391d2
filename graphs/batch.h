// The tokens of one pass, of any number of sequences.
#ifndef COLDSTREAM_GRAPHS_BATCH_H_
#define COLDSTREAM_GRAPHS_BATCH_H_

#include <cstdint>
#include <vector>

#include "graphs/kv_cache.h"

namespace coldstream {

struct BatchToken {
  int32_t id = 0;
  int64_t position = 0;            // in its sequence
  KvSequence* sequence = nullptr;  // blocks reserved past `position`
  bool wants_logits = false;
  bool wants_hidden = false;  // what the final norm makes of the last layer
};

// Tokens of one sequence come in order of position, each position once, and
// after everything of that sequence that is in the cache.
using Batch = std::vector<BatchToken>;

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_BATCH_H_
