// One vector for a text, from the hidden states of its tokens: what the final
// norm makes of the last layer, before the output head.
//
//   HiddenPool pool({.pooling = Pooling::kMean}, tokens);
//   pool.Add(hidden);                          // of each token, in order
//   const std::vector<float> vector = pool.Take();
//
// Sums are in double and in the order of the tokens, so that a vector does not
// depend on how the tokens were spread over passes.
// Source of the kinds: Reimers & Gurevych, "Sentence-BERT" (EMNLP 2019),
// section 3; GGUF specification, [arch].pooling_type.
#ifndef COLDSTREAM_RUNTIME_POOLING_H_
#define COLDSTREAM_RUNTIME_POOLING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/metadata.h"

namespace coldstream {

enum class Pooling {
  kMean,  // of all tokens
  kLast,  // the last token's: what models of causal attention are trained for
  kCls,   // the first token's; under causal attention it knows no other
};
const char* PoolingName(Pooling pooling);  // "mean", "last", "cls"

// Of a name. Errors: InvalidArgument.
StatusOr<Pooling> ParsePooling(std::string_view name);

// What a model's file says; the mean if it says nothing. Errors:
// InvalidArgument (a kind that gives no vector of a text: none, rank).
StatusOr<Pooling> DefaultPooling(const Metadata& metadata);

enum class VectorLength {
  kOne,  // divided by its L2 norm; zeros stay zeros
  kAsItIs,
};

struct EmbedOptions {
  std::optional<Pooling> pooling = std::nullopt;  // unset: DefaultPooling
  VectorLength length = VectorLength::kOne;
};

class HiddenPool {
 public:
  // For a text of `tokens` tokens, at least one; pooling set.
  HiddenPool(const EmbedOptions& options, int64_t tokens);

  // Hidden states are needed of tokens [first(), end()).
  int64_t first() const;
  int64_t end() const;

  // That of the next token; all are equally wide.
  void Add(std::span<const float> hidden);
  bool complete() const { return added_ == end() - first(); }
  // Once, when complete.
  std::vector<float> Take() const;

 private:
  const Pooling pooling_;
  const VectorLength length_;
  const int64_t tokens_;
  int64_t added_ = 0;
  std::vector<double> sum_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_POOLING_H_
