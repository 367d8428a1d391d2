// The best tokens of rows of logits, brought to the host: arg-max for one of a
// row, top-k for more; eight bytes each, in place of four for every token of
// the vocabulary.
//
// Rows are taken in groups, so that the memory it works in does not grow with
// them. Thread-safety: one call at a time, one stream.
#ifndef COLDSTREAM_KERNELS_CUDA_BEST_LOGITS_H_
#define COLDSTREAM_KERNELS_CUDA_BEST_LOGITS_H_

#include <cstdint>

#include "base/device.h"
#include "base/status.h"
#include "kernels/best_logits.h"
#include "kernels/cuda/logit_key.h"
#include "kernels/cuda/memory_cutter.h"

namespace coldstream::cuda {

class DeviceBestLogits {
 public:
  // Device memory for rows of up to `most_n` logits; counted while the cutter
  // counts.
  DeviceBestLogits(int64_t most_n, MemoryCutter* cutter);

  // Queues it: as PassOps::CopyOutBest; logits on the device.
  Status CopyOut(LogitChoice* host, const float* logits, int64_t rows,
                 int64_t stride, int64_t n, int64_t k, Stream* stream) const;

 private:
  int64_t most_n_;
  LogitKey* keys_;
  LogitKey* scratch_;
  LogitChoice* choices_;
  int32_t* first_bad_;  // PassOps::CheckFinite has told
};

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_BEST_LOGITS_H_
