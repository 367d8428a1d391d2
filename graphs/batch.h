// The tokens of one pass, of any number of sequences, and what comes of them.
#ifndef COLDSTREAM_GRAPHS_BATCH_H_
#define COLDSTREAM_GRAPHS_BATCH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "graphs/kv_cache.h"
#include "kernels/best_logits.h"

namespace coldstream {

struct BatchToken {
  int32_t id = 0;
  int64_t position = 0;            // in its sequence
  KvSequence* sequence = nullptr;  // blocks reserved past `position`
  bool wants_logits = false;
  // Of its logits the best so many suffice, up to kMostChoices; 0: all.
  int64_t choices = 0;
  bool wants_hidden = false;  // what the final norm makes of the last layer
};

// Tokens of one sequence come in order of position, each position once, and
// after everything of that sequence that is in the cache.
using Batch = std::vector<BatchToken>;

// The logits behind a token that wants them: all, or, where the token is
// content with the best and all would have to cross from a device to the host,
// those alone.
struct LogitRow {
  std::span<const float> logits = {};      // [vocab_rows], or empty
  std::span<const LogitChoice> best = {};  // as many as wanted, or empty
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_BATCH_H_
