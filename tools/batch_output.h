// The output of a batch: a file that a killed job goes on with.
//
//   OUT        one record a line, in the order they were finished
//   OUT.job    what it was begun with (batch_job.h)
//
// Invariant: OUT holds whole records, each line of the input at most once, all
// of one job; but for a torn last line after a kill, which Open cuts off.
// A record that was in OUT when it was opened is done: nothing of it is to be
// computed again. Two jobs cannot have the same OUT open.
// What is no regular file (a pipe, a terminal, "-") begins anew each time.
// Errors of Open: LineFile's, ReadBatchJob's, ScanBatchOutput's;
// FailedPrecondition, in one line, if OUT was begun with something else or is
// not a batch's at all; InvalidArgument if it is the input.
// Thread-safety: Append and Sync from one thread at a time, the rest from any.
#ifndef COLDSTREAM_TOOLS_BATCH_OUTPUT_H_
#define COLDSTREAM_TOOLS_BATCH_OUTPUT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "tools/batch_job.h"
#include "tools/batch_scan.h"
#include "tools/line_file.h"
#include "tools/line_sink.h"

namespace coldstream {

struct BatchOutputOptions {
  std::string path;   // "-": standard output
  std::string input;  // must be another file
  BatchJob job;
};

class BatchOutput : public LineSink {
 public:
  static StatusOr<std::unique_ptr<BatchOutput>> Open(
      const BatchOutputOptions& options);

  // Whether the line has a record from an earlier run. FailedPrecondition if
  // that is of another custom_id: the input was changed.
  StatusOr<bool> IsDone(int64_t line, std::string_view custom_id) const;

  // Records of earlier runs, and those of them with an error.
  int64_t done() const { return static_cast<int64_t>(scan_.done.size()); }
  int64_t failed() const { return scan_.failed; }
  // What a kill had left of a line.
  uint64_t torn_bytes() const { return torn_bytes_; }

  Status Append(std::string_view line) override { return file_->Append(line); }
  Status Sync() override { return file_->Sync(); }

 private:
  explicit BatchOutput(std::unique_ptr<LineFile> file)
      : file_(std::move(file)) {}

  Status CheckJob(const BatchJob& job) const;

  std::unique_ptr<LineFile> file_;
  BatchScan scan_;
  uint64_t torn_bytes_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_OUTPUT_H_
