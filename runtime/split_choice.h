// How many layers and FFNs the CPU computes beside a device, and who said so.
//
// Counts are of halves of layers (runtime/split_counts.h says which ones); the
// units behind them are a Placement.
#ifndef COLDSTREAM_RUNTIME_SPLIT_CHOICE_H_
#define COLDSTREAM_RUNTIME_SPLIT_CHOICE_H_

#include <cstdint>

#include "scheduler/placement.h"

namespace coldstream {

struct SplitCounts {
  int64_t layers = 0;
  // Of later layers, in passes of few tokens and of many; the layers of the
  // smaller count are among those of the larger.
  int64_t ffn = 0;
  int64_t ffn_prefill = 0;

  bool any() const { return layers > 0 || ffn > 0 || ffn_prefill > 0; }
  int64_t ffn_of(Phase phase) const {
    return phase == Phase::kDecode ? ffn : ffn_prefill;
  }
};

enum class SplitSource {
  kDefault,  // nobody: nothing is copied to the device, or rates are not known
  kForced,   // the options
  kChosen,   // predicted to be fastest
};
const char* SplitSourceName(SplitSource source);  // "default", "forced", ...

struct SplitChoice {
  SplitCounts counts = {};
  SplitSource layers = SplitSource::kDefault;
  SplitSource ffn = SplitSource::kDefault;
  SplitSource ffn_prefill = SplitSource::kDefault;

  SplitSource ffn_source(Phase phase) const {
    return phase == Phase::kDecode ? ffn : ffn_prefill;
  }
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_SPLIT_CHOICE_H_
