// Rows of the embedding table, read from disk for the tokens at hand.
//
// The table is the largest tensor of many models and a pass needs a few KiB of
// it, so it is never streamed and never resident.
#ifndef COLDSTREAM_GRAPHS_EMBEDDING_ROWS_H_
#define COLDSTREAM_GRAPHS_EMBEDDING_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/host_memory.h"
#include "base/status.h"
#include "graphs/weight_map.h"
#include "io/reader.h"
#include "kernels/ops.h"

namespace coldstream {

class EmbeddingRows {
 public:
  // `file`: that of the table. Room for `max_tokens` rows a call.
  static StatusOr<EmbeddingRows> Create(const EmbeddingTable& table,
                                        const File& file, int64_t max_tokens);
  static uint64_t BytesFor(const EmbeddingTable& table, const File& file,
                           int64_t max_tokens);

  // out: [ids, table.cols], row i the embedding of ids[i]. Blocks until read.
  // Errors: InvalidArgument (id outside the table), the reader's.
  Status Read(std::span<const int32_t> ids, const Ops& ops, Reader& reader,
              float* out);

 private:
  EmbeddingTable table_;
  uint64_t file_size_ = 0;
  uint64_t alignment_ = 0;
  uint64_t row_bytes_ = 0;
  uint64_t row_room_ = 0;  // of one row's window
  HostMemory memory_;
  std::vector<int32_t> unique_;
  std::vector<ReadWindow> windows_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_EMBEDDING_ROWS_H_
