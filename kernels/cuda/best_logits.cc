#include "kernels/cuda/best_logits.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "kernels/cuda/arg_max.h"
#include "kernels/cuda/logit_choices.h"
#include "kernels/cuda/top_k.h"

namespace coldstream::cuda {
namespace {

// Rows of a group: of a large vocabulary they are blocks enough for a card.
constexpr int64_t kRows = 16;
static_assert(kMostChoices <= kMostTopK);

}  // namespace

DeviceBestLogits::DeviceBestLogits(int64_t most_n, MemoryCutter* cutter)
    : most_n_(most_n),
      keys_(cutter->Take<LogitKey>(kRows * kMostChoices)),
      scratch_(
          cutter->Take<LogitKey>(TopKScratch(kRows, most_n, kMostChoices))),
      choices_(cutter->Take<LogitChoice>(kRows * kMostChoices)),
      first_bad_(cutter->Take<int32_t>(kRows)) {}

Status DeviceBestLogits::CopyOut(LogitChoice* host, const float* logits,
                                 int64_t rows, int64_t stride, int64_t n,
                                 int64_t k, Stream* stream) const {
  CHECK(n <= most_n_ && k >= 1 && k <= kMostChoices);
  for (int64_t row = 0; row < rows; row += kRows) {
    const int64_t count = std::min(kRows, rows - row);
    const float* const from = logits + row * stride;
    if (k == 1) {
      RETURN_IF_ERROR(
          ArgMax(from, stride, count, n, keys_, first_bad_, stream));
    } else {
      RETURN_IF_ERROR(
          TopK(from, stride, count, n, k, scratch_, keys_, first_bad_, stream));
    }
    RETURN_IF_ERROR(LogitChoices(keys_, count * k, choices_, stream));
    RETURN_IF_ERROR(stream->CopyToHost(
        reinterpret_cast<std::byte*>(host + row * k),
        reinterpret_cast<const std::byte*>(choices_),
        static_cast<size_t>(count * k) * sizeof(LogitChoice)));
  }
  return absl::OkStatus();
}

}  // namespace coldstream::cuda
