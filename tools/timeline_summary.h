// The sums of a Timeline: what was busy, what waited and for what, and how long
// a pass took.
//
// A stall is a span of the lane "stall"; its cause is its name up to ": ", what
// it waited for the rest ("waits for disk: blk.3.ffn").
// Units: nanoseconds, bytes.
#ifndef COLDSTREAM_TOOLS_TIMELINE_SUMMARY_H_
#define COLDSTREAM_TOOLS_TIMELINE_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/timeline.h"

namespace coldstream {

struct LaneSummary {
  std::string lane;
  uint64_t spans = 0;
  int64_t busy_ns = 0;  // with at least one span going on
  uint64_t bytes = 0;
};

struct StallSummary {
  std::string cause;
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t longest_ns = 0;
  std::string longest_for;  // what the longest one waited for
};

struct PassSummary {
  int64_t pass = 0;
  // Of what computes and waits; reads run ahead of the pass that needs them.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t stall_ns = 0;
  uint64_t read_bytes = 0;  // of the lane "disk", for this pass
};

struct TimelineSummary {
  int64_t wall_ns = 0;
  std::vector<LaneSummary> lanes;    // as the rows
  std::vector<StallSummary> stalls;  // the longest total first
  int64_t stall_ns = 0;
  std::vector<PassSummary> passes;  // by number
  int64_t median_pass_ns = 0;       // of an even count: the mean of the two
};

TimelineSummary Summarize(const Timeline& timeline);

// As the page takes it; shares are of the wall time.
nlohmann::json SummaryJson(const TimelineSummary& summary);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_TIMELINE_SUMMARY_H_
