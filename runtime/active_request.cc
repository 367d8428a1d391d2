#include "runtime/active_request.h"

#include <exception>
#include <utility>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

Status CheckRequest(const Request& request,
                    const ActiveRequest::Limits& limits) {
  const GenerateRequest& generate = request.generate;
  const auto prompt = static_cast<int64_t>(generate.prompt.size());
  if (prompt == 0)
    return absl::InvalidArgumentError("the prompt is empty: no tokens to feed");
  if (prompt > limits.context) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the prompt has %d tokens but the context has room for %d; raise the "
        "context or shorten the prompt",
        prompt, limits.context));
  }
  for (const TokenId token : generate.prompt) {
    if (token < 0 || token >= limits.vocab) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "token id %d is outside the vocabulary of %d", token, limits.vocab));
    }
  }
  if (generate.max_tokens < -1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "max_tokens is %d, expected 0 or more, or -1 for no limit",
        generate.max_tokens));
  }
  if (request.logprobs &&
      (*request.logprobs < 0 || *request.logprobs > kMostLogprobs)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "logprobs is %d, expected 0..%d", *request.logprobs, kMostLogprobs));
  }
  if (request.embed && (request.logprobs || request.echo)) {
    return absl::InvalidArgumentError(
        "an embedding has no scores: expected no logprobs and no echo");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<ActiveRequest>> ActiveRequest::Create(
    RequestId id, Request request, RequestCallbacks callbacks,
    const Limits& limits, const Tokenizer* tokenizer) {
  RETURN_IF_ERROR(CheckRequest(request, limits));
  ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create(request.generate.sampling));
  return std::unique_ptr<ActiveRequest>(
      new ActiveRequest(id, std::move(request), std::move(callbacks), limits,
                        tokenizer, std::move(sampler)));
}

ActiveRequest::ActiveRequest(RequestId id, Request request,
                             RequestCallbacks callbacks, const Limits& limits,
                             const Tokenizer* tokenizer, Sampler sampler)
    : id_(id),
      request_(std::move(request)),
      callbacks_(std::move(callbacks)),
      limits_(limits),
      tokenizer_(*tokenizer),
      sampler_(std::move(sampler)),
      stream_(request_.generate.stop) {
  state_.tokens = request_.generate.prompt;
  result_.prompt_tokens = std::ssize(state_.tokens);
  if (request_.embed) {
    pool_.emplace(*request_.embed, result_.prompt_tokens);
    // What comes behind has no part in it.
    state_.tokens.resize(static_cast<size_t>(pool_->end()));
    state_.rows_from = pool_->first();
    state_.row_kind = RowKind::kHidden;
    return;
  }
  const bool scores_prompt = request_.echo && request_.logprobs;
  state_.rows_from = scores_prompt ? 0 : result_.prompt_tokens - 1;
  for (const TokenId token : state_.tokens) sampler_.Accept(token);
}

bool ActiveRequest::Begin() {
  if (std::exchange(begun_, true)) return false;
  result_.queued_seconds =
      std::chrono::duration<double>(Clock::now() - submitted_).count();
  return true;
}

Status ActiveRequest::TakeLogits(int64_t index, const LogitRow& row) {
  if (finished_) return absl::OkStatus();
  const auto best = static_cast<size_t>(request_.logprobs.value_or(0));
  const auto next = static_cast<size_t>(index) + 1;
  if (next < state_.tokens.size()) {
    result_.prompt_scores.push_back(
        ScoreToken(AllowedLogits(row), state_.tokens[next], best));
    return absl::OkStatus();
  }
  if (request_.generate.max_tokens == 0) {
    Finish(FinishReason::kLength);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const TokenId token, sampler_.SampleRow(row, limits_.vocab));
  if (!request_.generate.ignore_end_of_generation &&
      tokenizer_.IsEndOfGeneration(token)) {
    Finish(FinishReason::kEndOfGeneration);
    return absl::OkStatus();
  }
  if (request_.logprobs)
    result_.generated_scores.push_back(
        ScoreToken(AllowedLogits(row), token, best));
  Accept(token);
  return callback_status_;
}

void ActiveRequest::TakeHidden(std::span<const float> hidden) {
  pool_->Add(hidden);
  if (!pool_->complete()) return;
  result_.embedding = pool_->Take();
  Finish(FinishReason::kLength);
}

std::span<const float> ActiveRequest::AllowedLogits(const LogitRow& row) const {
  return row.logits.first(static_cast<size_t>(limits_.vocab));
}

void ActiveRequest::Accept(TokenId token) {
  sampler_.Accept(token);
  GenerateResult& generated = result_.generated;
  generated.tokens.push_back(token);
  Emit(stream_.Push(tokenizer_.Decode(token)));
  if (stream_.stopped()) return Finish(FinishReason::kStopString);
  const int64_t length = std::ssize(state_.tokens) + 1;
  if (std::ssize(generated.tokens) == request_.generate.max_tokens ||
      length > limits_.context)
    return Finish(FinishReason::kLength);
  state_.tokens.push_back(token);
}

void ActiveRequest::Finish(FinishReason reason) {
  result_.generated.finish = reason;
  finished_ = true;
}

void ActiveRequest::Emit(const std::string& text) {
  if (text.empty()) return;
  result_.generated.text += text;
  if (!callbacks_.on_text || !callback_status_.ok()) return;
  try {
    if (!callbacks_.on_text(text))
      callback_status_ = absl::CancelledError("cancelled by its reader");
  } catch (const std::exception& exception) {
    callback_status_ = absl::InternalError(
        absl::StrFormat("on_text threw: %s", exception.what()));
  } catch (...) {
    callback_status_ = absl::InternalError("on_text threw");
  }
}

void ActiveRequest::Deliver(const Status& status) {
  Emit(stream_.Flush());
  result_.status = status;
  result_.reused_tokens = state_.reused_tokens;
  result_.put_back = state_.put_back;
  result_.seconds =
      std::chrono::duration<double>(Clock::now() - submitted_).count();
  if (!callbacks_.on_done) return;
  try {
    callbacks_.on_done(std::move(result_));
  } catch (...) {  // nobody is left to tell
  }
}

}  // namespace coldstream
