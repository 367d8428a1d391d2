// The requests of a batch file, one after the other.
//
// Every line that is not blank gives one item, a request or an error, so that
// nothing is left without a record. A line over the limit is never in memory
// whole. The second line with a custom_id is an error (which of the two the id
// means could not be told), also where the first is another shard's: all lines
// are read whatever the shard.
// Memory: a line, and 16 bytes and a little for each custom_id.
// Thread-safety: none; one thread at a time.
#ifndef COLDSTREAM_TOOLS_BATCH_INPUT_H_
#define COLDSTREAM_TOOLS_BATCH_INPUT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "runtime/fingerprint.h"
#include "tools/batch_request.h"
#include "tools/line_reader.h"
#include "tools/shard.h"

namespace coldstream {

struct BatchInputOptions {
  std::string path;  // "-": standard input
  Shard shard = {};
  uint64_t seed = 0;  // see ParseBatchLine
  // No request is longer: for the census, which counts no positions without.
  int64_t context = 0;
  LineReaderOptions lines = {};
};

class BatchInput {
 public:
  struct Item {
    int64_t line = 0;  // of the file, from 1
    BatchLine request;
  };

  // Errors: LineReader::Open's.
  static StatusOr<std::unique_ptr<BatchInput>> Open(
      const BatchInputOptions& options);

  // The next item of the shard; nothing at the end. Errors: LineReader's.
  StatusOr<std::optional<Item>> Next();

  uint64_t bytes() const { return reader_->size(); }  // 0: not known
  uint64_t bytes_read() const { return reader_->position(); }

 private:
  BatchInput(const BatchInputOptions& options,
             std::unique_ptr<LineReader> reader)
      : options_(options), reader_(std::move(reader)) {}

  BatchLine Parse(const LineReader::Line& line);

  const BatchInputOptions options_;
  std::unique_ptr<LineReader> reader_;
  absl::flat_hash_set<Fingerprint::Value> ids_;
};

// What a first reading of an input tells of it.
struct BatchCensus {
  static constexpr int64_t kBytesOfToken = 4;

  int64_t lines = 0;  // not blank, of the shard
  // Of all that can change a result: "3 lines, 120 bytes, 5c2f...".
  std::string fingerprint;
  // Of a request, prompt and answer, on average; a token of text is taken to be
  // kBytesOfToken bytes. 0 where there is none, or no context to count by.
  int64_t positions = 0;
};
// Errors: LineReader's; InvalidArgument for standard input, which can be read
// but once.
StatusOr<BatchCensus> TakeBatchCensus(const BatchInputOptions& options);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_INPUT_H_
