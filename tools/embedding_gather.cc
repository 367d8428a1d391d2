#include "tools/embedding_gather.h"

#include "absl/strings/str_format.h"
#include "tools/batch_error.h"

namespace coldstream {
namespace {

Status WorstOf(const std::vector<Status>& statuses) {
  Status worst;
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (statuses[i].ok()) continue;
    if (BatchErrorOf(statuses[i]).status_code >= 500) return statuses[i];
    if (!worst.ok()) continue;
    worst = statuses.size() == 1
                ? statuses[i]
                : absl::Status(statuses[i].code(),
                               absl::StrFormat("input %d: %s", i,
                                               MessageOf(statuses[i])));
  }
  return worst;
}

}  // namespace

EmbeddingGather::EmbeddingGather(size_t count, OnAll on_all)
    : on_all_(std::move(on_all)), left_(count), statuses_(count) {
  all_.vectors.resize(count);
}

void EmbeddingGather::Take(size_t index, RequestResult result) {
  {
    const std::lock_guard lock(mutex_);
    statuses_[index] = std::move(result.status);
    all_.vectors[index] = std::move(result.embedding);
    all_.prompt_tokens += result.prompt_tokens;
    if (--left_ > 0) return;
    all_.status = WorstOf(statuses_);
  }
  on_all_(std::move(all_));
}

}  // namespace coldstream
