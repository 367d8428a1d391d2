// How fast this machine computes: products by weight type and attention,
// measured once in a second or so, and what a model's units take by that.
//
//   ASSIGN_OR_RETURN(auto rates, ComputeRates::Measure(*model, *ops,
//   parallel)); const auto costs = UnitCosts(*model, rates, {.tokens = 1});
//
// The measured products run over more memory than the last-level cache holds,
// in pieces the size of a weight unit, as a pass does. Weights are zeros: the
// kernels take the same time whatever the values.
#ifndef COLDSTREAM_RUNTIME_COMPUTE_RATES_H_
#define COLDSTREAM_RUNTIME_COMPUTE_RATES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/model.h"
#include "scheduler/cost_model.h"

namespace coldstream {

class ComputeRates {
 public:
  // Seconds by name, for keeping: "q4_k/16" (a byte of weights, at 16 tokens),
  // "attention/32x8x128/1" (a token and a position it looks at).
  using Seconds = std::map<std::string, double>;

  // Measures what `model` needs and `known` lacks, with the best row of the ops
  // table. Takes about 100 MiB for the time of the measurement. Errors:
  // ResourceExhausted, InvalidArgument (COLDSTREAM_ISA).
  static StatusOr<ComputeRates> Measure(const Model& model, int threads,
                                        const Seconds& known = {});

  // Of seconds that were measured. `measure`: fills in what `seconds` lacks of
  // what `model` needs, by calls of its two functions with each weight type and
  // layer shape, and each count of tokens.
  struct Bench {
    std::function<StatusOr<double>(DType type, int64_t tokens)> weight_byte;
    std::function<StatusOr<double>(const LayerShape& shape, int64_t tokens)>
        attention_position;
  };
  static StatusOr<ComputeRates> MeasureWith(const Bench& bench,
                                            const Model& model,
                                            const Seconds& known);
  static constexpr int64_t kMostTokens = 128;  // that are measured
  static constexpr int64_t kPositions = 1024;  // that attention looks back at

  // What the figures depend on beside the model: the CPU's name, the ops row
  // and the threads.
  static std::string MachineKey(int threads);

  const Seconds& seconds() const { return seconds_; }

  // Of one byte of weights of `type` multiplied with `tokens` tokens; between
  // measured counts in a straight line, above the largest in proportion.
  double WeightByte(DType type, int64_t tokens) const;
  // Of one token, in a pass of `tokens`, looking at one position of a layer.
  double AttentionPosition(const LayerShape& shape, int64_t tokens) const;

 private:
  Seconds seconds_;
};

struct PassLoad {
  int64_t tokens = 1;
  int64_t logit_rows = 1;
  int64_t position = 0;  // of the first token
};

// By unit: bytes to read where it is cold, seconds to compute.
std::vector<UnitCost> UnitCosts(const Model& model, const ComputeRates& rates,
                                const PassLoad& load);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_COMPUTE_RATES_H_
