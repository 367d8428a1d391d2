// Which lines of a batch's input the output has a record of already.
//
// What a kill or a power cut left of the last line (no line end, or no JSON) is
// not counted and told apart by whole_bytes. Anything else that is not a record
// of a batch, and two records of one line, are errors: whatever has written
// them, going on would make it worse.
// Memory: some bytes a record. Errors: LineReader's; DataLoss, with line and
// offset in the output.
#ifndef COLDSTREAM_TOOLS_BATCH_SCAN_H_
#define COLDSTREAM_TOOLS_BATCH_SCAN_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "runtime/fingerprint.h"

namespace coldstream {

struct BatchScan {
  // Line of the input -> fingerprint of its custom_id ("" where it had none).
  absl::flat_hash_map<int64_t, Fingerprint::Value> done;
  int64_t failed = 0;        // of them, with an error
  uint64_t whole_bytes = 0;  // of the output, up to its last whole record
};

StatusOr<BatchScan> ScanBatchOutput(const std::string& path);

// One record, as far as a scan looks at it.
struct BatchRecord {
  int64_t line = 0;
  std::string custom_id;
  bool failed = false;
};
// Errors: InvalidArgument (not JSON), DataLoss (JSON of something else).
StatusOr<BatchRecord> ParseBatchRecord(std::string_view text);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_SCAN_H_
