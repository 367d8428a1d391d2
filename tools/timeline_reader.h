// Reads a Chrome trace, "JSON Object Format", as `--trace` writes it.
//
// Drawn are complete events ("X", a row for each thread) and counters ("C");
// thread names and their order are taken from metadata. Rows named "disk",
// "disk 2", ... are one lane. Events are taken one at a time: the file's whole
// JSON is never in memory.
// Errors: NotFound and others of File::Open; InvalidArgument: larger than
// kMaxTraceBytes, or no "traceEvents"; DataLoss: no JSON, or an event without
// what its kind needs.
#ifndef COLDSTREAM_TOOLS_TIMELINE_READER_H_
#define COLDSTREAM_TOOLS_TIMELINE_READER_H_

#include <cstdint>
#include <string>

#include "base/status.h"
#include "tools/timeline.h"

namespace coldstream {

// About three million events: more than a browser draws with ease.
inline constexpr uint64_t kMaxTraceBytes = uint64_t{512} << 20;

StatusOr<Timeline> ReadTimeline(const std::string& path);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_TIMELINE_READER_H_
