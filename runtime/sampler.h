// Next-token choice from logits: the same logits and seed give the same tokens.
//
// Order as users of llama.cpp know it: repetition penalty, top-k, top-p, min-p,
// temperature, draw. Temperature 0 is arg-max (lowest id on ties). Arithmetic
// is double and single-threaded, the generator is our own (no
// implementation-defined std distribution), so a seed means the same
// everywhere.
//
//   ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create({.temperature = 0}));
//   ASSIGN_OR_RETURN(TokenId id, sampler.Sample(logits, vocab_size));
//   sampler.Accept(id);
//
// One sampler serves one sequence: its state never depends on batch mates.
// Thread-safety: none; use from one thread at a time.
// Source of the generator: Blackman and Vigna, "Scrambled linear pseudorandom
// number generators" (xoshiro256**, seeded through splitmix64).
#ifndef COLDSTREAM_RUNTIME_SAMPLER_H_
#define COLDSTREAM_RUNTIME_SAMPLER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "base/status.h"
#include "graphs/batch.h"
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

  // Takes the scratch memory that Sample needs for a vocabulary of this size,
  // so that no later call allocates.
  void Reserve(int64_t vocab);

  // Remembers a token for the repetition penalty (prompt tokens too).
  void Accept(TokenId token);

  // The next token; logits: [vocab], of which ids >= allowed_vocab (padding
  // rows) are never looked at or chosen. Minus infinity rules an id out.
  // Errors: InvalidArgument for NaN or plus infinity ("logits are not finite",
  // with the first bad id), for no logits, and where every id is ruled out.
  StatusOr<TokenId> Sample(std::span<const float> logits,
                           int64_t allowed_vocab);

  // How many of the best allowed logits Sample needs to give the token that all
  // of them would give; 0: all. Of one sampler always the same.
  int64_t choices() const;
  // As above of either: all logits, or their best choices() or more.
  StatusOr<TokenId> SampleRow(const LogitRow& row, int64_t allowed_vocab);

 private:
  struct Candidate {
    double logit;
    TokenId id;
  };

  explicit Sampler(const SamplingOptions& options);
  // The top-k candidates after the repetition penalty, in no useful order.
  void CollectCandidates(std::span<const float> logits, int64_t keep);
  bool penalises() const {
    return options_.repeat_penalty != 1 && options_.repeat_last_n != 0;
  }
  bool greedy() const {
    return options_.temperature == 0 || options_.top_k == 1;
  }
  // From candidates_, of which one at least is there.
  TokenId Choose();
  TokenId Draw();
  double NextUniform();  // [0, 1)

  SamplingOptions options_;
  std::deque<TokenId> window_;  // the last repeat_last_n, if bounded
  std::map<TokenId, int64_t> repetitions_;  // occurrences in the window
  uint64_t state_[4] = {};
  std::vector<Candidate> candidates_;  // scratch, kept between calls
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_SAMPLER_H_
