// Next-token choice from logits: the same logits and seed give the same tokens.
//
// Order as users of llama.cpp know it: repetition penalty, top-k, top-p, min-p,
// temperature, draw. Temperature 0 is arg-max (lowest id on ties). Arithmetic
// is double and single-threaded, the generator is our own (no
// implementation-defined std distribution), so a seed means the same
// everywhere.
#ifndef COLDSTREAM_RUNTIME_SAMPLER_H_
#define COLDSTREAM_RUNTIME_SAMPLER_H_

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/tokenizer.h"

namespace coldstream {

struct SamplingOptions {
  double temperature = 0.8;     // 0: greedy
  int64_t top_k = 40;           // 0: all
  double top_p = 0.95;          // 1: off; 0: keeps the single best
  double min_p = 0.05;          // 0: off
  double repeat_penalty = 1.0;  // 1: off
  int64_t repeat_last_n = 64;   // tokens looked back at; 0: off, -1: all
  uint64_t seed = 0;
};

class Sampler {
 public:
  // InvalidArgument for a value that is not finite or out of range, naming it.
  static StatusOr<Sampler> Create(const SamplingOptions& options);

  // Remembers a token for the repetition penalty (prompt tokens too).
  void Accept(TokenId token);

  // The next token; logits: [vocab], of which ids >= allowed_vocab (padding
  // rows) are never chosen. Errors: InvalidArgument "logits are not finite"
  // naming the first bad id; all minus infinity.
  StatusOr<TokenId> Sample(std::span<const float> logits,
                           int64_t allowed_vocab);

 private:
  explicit Sampler(const SamplingOptions& options);
  double NextUniform();  // [0, 1)

  SamplingOptions options_;
  std::deque<TokenId> recent_;
  uint64_t state_[4] = {};
  struct Candidate {
    double logit;
    TokenId id;
  };
  std::vector<Candidate> candidates_;  // scratch, kept between calls
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_SAMPLER_H_
