#include "runtime/model.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace coldstream {

StatusOr<std::shared_ptr<const Model>> Model::Open(
    const ModelOptions& options) {
  const std::shared_ptr<Model> model(new Model);
  ASSIGN_OR_RETURN(model->checkpoint_,
                   Checkpoint::Open(options.path, {options.direct}));
  ASSIGN_OR_RETURN(model->config_, LoadModelConfig(model->checkpoint_));
  ASSIGN_OR_RETURN(
      model->weights_,
      MapWeights(model->checkpoint_, model->config_, options.unit_bytes));
  StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      Tokenizer::Create(model->checkpoint_.metadata(), options.tokenizer);
  if (!tokenizer.ok()) {
    model->tokenizer_status_ = tokenizer.status();
    return model;
  }
  model->tokenizer_ = *std::move(tokenizer);
  if (model->tokenizer_->vocab_size() > model->config_.vocab_rows) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: the vocabulary has %d tokens but token_embd.weight only %d rows",
        options.path, model->tokenizer_->vocab_size(),
        model->config_.vocab_rows));
  }
  return model;
}

StatusOr<const Tokenizer*> Model::tokenizer() const {
  if (!tokenizer_status_.ok()) return tokenizer_status_;
  return tokenizer_.get();
}

int64_t Model::vocab_size() const {
  if (tokenizer_ == nullptr) return config_.vocab_rows;
  return std::min(tokenizer_->vocab_size(), config_.vocab_rows);
}

uint64_t Model::memory_bytes() const {
  return checkpoint_.metadata().memory_bytes() +
         (tokenizer_ == nullptr ? 0 : tokenizer_->memory_bytes());
}

}  // namespace coldstream
