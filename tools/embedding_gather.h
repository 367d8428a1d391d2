// The vectors of one line's inputs, which the engine computes apart, put
// together again.
//
//   auto gather = std::make_shared<EmbeddingGather>(count, on_all);
//   gather->Take(i, result);    // of each input, in any order
//
// Calls on_all once, from the Take that completes it. If inputs fail, its
// status is that of a failure of ours (BatchErrorOf) if there is one, else of
// the first of them, so that it does not depend on the order.
// Thread-safety: Take from any thread.
#ifndef COLDSTREAM_TOOLS_EMBEDDING_GATHER_H_
#define COLDSTREAM_TOOLS_EMBEDDING_GATHER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/request.h"

namespace coldstream {

struct GatheredEmbeddings {
  Status status;
  std::vector<std::vector<float>> vectors;  // in the order of the inputs
  int64_t prompt_tokens = 0;                // of all of them
};

class EmbeddingGather {
 public:
  using OnAll = std::function<void(GatheredEmbeddings all)>;
  // `count`: at least 1.
  EmbeddingGather(size_t count, OnAll on_all);

  void Take(size_t index, RequestResult result);

 private:
  const OnAll on_all_;
  std::mutex mutex_;  // guards what follows
  size_t left_;
  std::vector<Status> statuses_;
  GatheredEmbeddings all_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_EMBEDDING_GATHER_H_
