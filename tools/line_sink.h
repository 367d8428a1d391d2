// Where finished lines go: a file, a pipe, a test's memory.
#ifndef COLDSTREAM_TOOLS_LINE_SINK_H_
#define COLDSTREAM_TOOLS_LINE_SINK_H_

#include <string_view>

#include "base/status.h"

namespace coldstream {

class LineSink {
 public:
  virtual ~LineSink() = default;
  // `line` ends with the only line end in it. After an error nothing of it is
  // there, and every later call returns the error again.
  virtual Status Append(std::string_view line) = 0;
  // Everything appended survives a power cut when this returns OK.
  virtual Status Sync() = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_LINE_SINK_H_
