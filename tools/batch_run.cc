#include "tools/batch_run.h"

#include <memory>
#include <optional>
#include <vector>

#include "tools/batch_encoding.h"

namespace coldstream {

Status BatchRun::Run() {
  Status status = Feed();
  parts_.engine->Drain();
  // What was computed is kept, however the job ends.
  const Status written = parts_.writer->Finish();
  status.Update(failure());
  status.Update(written);
  return status;
}

BatchProgress BatchRun::progress() const {
  return {.done_before = done_before_,
          .succeeded = succeeded_,
          .failed = failed_,
          .bytes_read = bytes_read_,
          .bytes = parts_.input->bytes()};
}

Status BatchRun::Feed() {
  while (true) {
    RETURN_IF_ERROR(failure());
    if (parts_.cancel != nullptr && *parts_.cancel)
      return absl::CancelledError("interrupted");
    ASSIGN_OR_RETURN(std::optional<BatchInput::Item> item,
                     parts_.input->Next());
    bytes_read_ = parts_.input->bytes_read();
    if (!item) return absl::OkStatus();
    RETURN_IF_ERROR(TakeItem(*std::move(item)));
  }
}

Status BatchRun::TakeItem(BatchInput::Item item) {
  const BatchKey key = {.line = item.line, .custom_id = item.request.custom_id};
  ASSIGN_OR_RETURN(const bool done,
                   parts_.output->IsDone(key.line, key.custom_id));
  if (done) {
    ++done_before_;
    return absl::OkStatus();
  }
  if (item.request.error) return DeliverError(key, *item.request.error);
  return Submit(key, std::move(item.request.request));
}

Status BatchRun::Submit(BatchKey key, BatchRequest request) {
  if (request.endpoint == BatchEndpoint::kEmbeddings)
    return SubmitEmbedding(std::move(key), std::move(request));
  const Status encoded =
      EncodeBatchInput(*parts_.model.tokenizer, *parts_.chat, &request);
  if (!encoded.ok()) return DeliverError(key, BatchErrorOf(encoded));
  ASSIGN_OR_RETURN(const BatchWriter::Ticket ticket, parts_.writer->Admit());
  auto shared = std::make_shared<const BatchRequest>(std::move(request));
  const auto submitted = parts_.engine->Submit(
      shared->request,
      {.on_text = {}, .on_done = [this, ticket, key, shared](RequestResult r) {
         Deliver(ticket, key, *shared, r);
       }});
  if (submitted.ok()) return absl::OkStatus();
  RequestResult refused;
  refused.status = submitted.status();
  Deliver(ticket, key, *shared, refused);
  return absl::OkStatus();
}

// Each input is a request of its own, so that those of one line share passes.
Status BatchRun::SubmitEmbedding(BatchKey key, BatchRequest request) {
  const Engine& engine = *parts_.engine;
  if (const auto wrong =
          CheckDimensions(request.embedding, engine.model().config().hidden))
    return DeliverError(key, *wrong);
  StatusOr<std::vector<Request>> inputs = EncodeBatchEmbedding(
      *parts_.model.tokenizer, parts_.pooling, request.embedding);
  if (!inputs.ok()) return DeliverError(key, BatchErrorOf(inputs.status()));
  ASSIGN_OR_RETURN(const BatchWriter::Ticket ticket, parts_.writer->Admit());
  auto shared = std::make_shared<const BatchRequest>(std::move(request));
  const auto gather = std::make_shared<EmbeddingGather>(
      inputs->size(),
      [this, ticket, key, shared](const GatheredEmbeddings& all) {
        DeliverEmbedding(ticket, key, *shared, all);
      });
  for (size_t i = 0; i < inputs->size(); ++i) {
    const auto submitted = parts_.engine->Submit(
        std::move((*inputs)[i]),
        {.on_text = {}, .on_done = [gather, i](RequestResult result) {
           gather->Take(i, std::move(result));
         }});
    if (submitted.ok()) continue;
    RequestResult refused;
    refused.status = submitted.status();
    gather->Take(i, std::move(refused));
  }
  return absl::OkStatus();
}

void BatchRun::Deliver(BatchWriter::Ticket ticket, const BatchKey& key,
                       const BatchRequest& request,
                       const RequestResult& result) {
  if (!Account(ticket, result.status)) return;
  parts_.writer->Deliver(ticket,
                         BatchAnswerLine(key, request, result, parts_.model));
}

void BatchRun::DeliverEmbedding(BatchWriter::Ticket ticket, const BatchKey& key,
                                const BatchRequest& request,
                                const GatheredEmbeddings& all) {
  if (!Account(ticket, all.status)) return;
  parts_.writer->Deliver(ticket,
                         BatchEmbeddingLine(key, request, all, parts_.model));
}

bool BatchRun::Account(BatchWriter::Ticket ticket, const Status& status) {
  if (!status.ok() && BatchErrorOf(status).status_code >= 500) {
    Fail(status);
    parts_.writer->Abandon(ticket);
    return false;
  }
  ++(status.ok() ? succeeded_ : failed_);
  return true;
}

Status BatchRun::DeliverError(const BatchKey& key, const BatchError& error) {
  ASSIGN_OR_RETURN(const BatchWriter::Ticket ticket, parts_.writer->Admit());
  ++failed_;
  parts_.writer->Deliver(ticket, BatchErrorLine(key, error));
  return absl::OkStatus();
}

void BatchRun::Fail(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = status;
}

Status BatchRun::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace coldstream
