// One phase (prompt or generation) of one run of a benchmark: tokens, time, and
// what it took of every link, as differences of counters.
#ifndef COLDSTREAM_TOOLS_PHASE_SAMPLE_H_
#define COLDSTREAM_TOOLS_PHASE_SAMPLE_H_

#include <cstdint>

#include "runtime/engine.h"
#include "tools/read_counts.h"

namespace coldstream {

EngineStats operator+(const EngineStats& a, const EngineStats& b);

struct PhaseSample {
  int64_t tokens = 0;
  double seconds = 0;  // wall clock
  EngineStats used;
  ReadCounts read;

  double tokens_per_second() const;  // 0 where no time was measured
};

// Both phases as one.
PhaseSample operator+(const PhaseSample& a, const PhaseSample& b);

struct BenchRun {
  PhaseSample prompt;
  PhaseSample generation;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_PHASE_SAMPLE_H_
