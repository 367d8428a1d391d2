// What a batch's output was made with, kept beside it in OUT.job, so that a job
// goes on only with what it was begun with.
//
//   {"format": "coldstream-batch-job", "version": 1, "model": "...",
//    "options": "...", "input": "..."}
#ifndef COLDSTREAM_TOOLS_BATCH_JOB_H_
#define COLDSTREAM_TOOLS_BATCH_JOB_H_

#include <string>

#include "base/status.h"

namespace coldstream {

// Texts that differ exactly where results could: for people to read, too.
struct BatchJob {
  std::string model;
  std::string options;
  std::string input;
};

std::string BatchJobPath(const std::string& output);

// Errors: NotFound (there is none), DataLoss (it cannot be read), both naming
// it; FailedPrecondition (a newer version of the format).
StatusOr<BatchJob> ReadBatchJob(const std::string& output);

// Whole or not at all. Errors: AtomicFile's.
Status WriteBatchJob(const std::string& output, const BatchJob& job);

// FailedPrecondition, one line: what of `begun` differs from `now`, and how to
// go on.
Status CheckSameBatchJob(const std::string& output, const BatchJob& begun,
                         const BatchJob& now);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_JOB_H_
