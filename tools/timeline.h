// A recorded run, as `coldstream trace` draws it: rows of spans, and counters.
//
// Units: nanoseconds since the earliest event.
#ifndef COLDSTREAM_TOOLS_TIMELINE_H_
#define COLDSTREAM_TOOLS_TIMELINE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace coldstream {

struct TimelineSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t pass = -1;   // -1: belongs to none
  uint64_t bytes = 0;  // 0: not known
  uint32_t name = 0;   // index into Timeline::names
};

struct TimelineRow {
  std::string name;                 // "disk 2"
  std::string lane;                 // "disk": rows of one lane add up
  std::vector<TimelineSpan> spans;  // sorted by begin_ns
};

struct TimelineCounter {
  struct Point {
    int64_t at_ns = 0;
    double value = 0;
  };
  std::string name;
  std::vector<Point> points;  // sorted by at_ns; each holds until the next
};

struct Timeline {
  std::vector<std::string> names;  // each once
  std::vector<TimelineRow> rows;   // from top to bottom
  std::vector<TimelineCounter> counters;
  uint64_t ignored = 0;  // events of kinds that are not drawn
  int64_t wall_ns = 0;   // the end of the last span or count
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_TIMELINE_H_
