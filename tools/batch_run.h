// Works off a batch: requests from an input to an engine, results to an output.
//
// Every line of the input ends in one line of the output: a result, or an error
// that is the line's own fault (it can never be computed). What fails by ours
// (the disk, the device, an interrupt) has no line: the job ends with that
// error, and goes on there when it is run again.
// Thread-safety: progress() from any thread.
#ifndef COLDSTREAM_TOOLS_BATCH_RUN_H_
#define COLDSTREAM_TOOLS_BATCH_RUN_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/status.h"
#include "runtime/chat_template.h"
#include "runtime/engine.h"
#include "tools/batch_input.h"
#include "tools/batch_output.h"
#include "tools/batch_result.h"
#include "tools/batch_writer.h"
#include "tools/embedding_gather.h"

namespace coldstream {

struct BatchProgress {
  int64_t done_before = 0;  // by earlier runs
  int64_t succeeded = 0;    // in this one
  int64_t failed = 0;
  uint64_t bytes_read = 0;  // of the input
  uint64_t bytes = 0;       // of the input, or 0
};

class BatchRun {
 public:
  // What it works with; all of it must outlive the run.
  struct Parts {
    Engine* engine = nullptr;
    const StatusOr<ChatTemplate>* chat = nullptr;
    BatchModel model;
    BatchInput* input = nullptr;
    const BatchOutput* output = nullptr;
    BatchWriter* writer = nullptr;
    const std::atomic<bool>* cancel = nullptr;
    // Of embeddings whose line has none; unset: the model's.
    std::optional<Pooling> pooling = std::nullopt;
  };
  explicit BatchRun(Parts parts) : parts_(std::move(parts)) {}

  // Returns when everything is written. Errors: the input's, the output's, the
  // engine's; Cancelled.
  Status Run();
  BatchProgress progress() const;

 private:
  Status Feed();
  Status TakeItem(BatchInput::Item item);
  // Submits; what is wrong with the request is a line of the output.
  Status Submit(BatchKey key, BatchRequest request);
  Status SubmitEmbedding(BatchKey key, BatchRequest request);
  void Deliver(BatchWriter::Ticket ticket, const BatchKey& key,
               const BatchRequest& request, const RequestResult& result);
  void DeliverEmbedding(BatchWriter::Ticket ticket, const BatchKey& key,
                        const BatchRequest& request,
                        const GatheredEmbeddings& all);
  // Counts what came of a line; true if it is to be written.
  bool Account(BatchWriter::Ticket ticket, const Status& status);
  Status DeliverError(const BatchKey& key, const BatchError& error);
  // Remembers the first failure that is no line's fault.
  void Fail(const Status& status);
  Status failure() const;

  const Parts parts_;
  std::atomic<int64_t> done_before_{0};
  std::atomic<int64_t> succeeded_{0};
  std::atomic<int64_t> failed_{0};
  std::atomic<uint64_t> bytes_read_{0};
  mutable std::mutex mutex_;
  Status failure_;  // guarded by mutex_
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_RUN_H_
