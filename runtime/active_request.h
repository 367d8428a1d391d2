// A request that is being worked on: its tokens, what was sampled, its text.
//
//   ActiveRequest request(id, ...);       // ... its state goes to a scheduler
//   request.TakeLogits(index, logits);    // of each row it wanted, in order,
//   request.TakeHidden(hidden);           // or this, as its state says
//   if (request.finished()) deliver(request.TakeResult(status));
//
// Its result depends on the request and on the logits alone, not on when they
// come. Thread-safety: none; one thread at a time.
#ifndef COLDSTREAM_RUNTIME_ACTIVE_REQUEST_H_
#define COLDSTREAM_RUNTIME_ACTIVE_REQUEST_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "graphs/batch.h"
#include "runtime/pooling.h"
#include "runtime/request.h"
#include "runtime/sampler.h"
#include "runtime/sequence_scheduler.h"
#include "runtime/text_stream.h"
#include "runtime/tokenizer.h"

namespace coldstream {

class ActiveRequest {
 public:
  struct Limits {
    int64_t context = 0;  // most tokens of prompt and answer together
    int64_t vocab = 0;    // ids from here on are padding
  };
  // `request`: if it wants an embedding, its pooling is set. Errors:
  // InvalidArgument (empty prompt; one longer than the context, with both
  // numbers; a token out of range; options out of range).
  // `tokenizer` must outlive it.
  static StatusOr<std::unique_ptr<ActiveRequest>> Create(
      RequestId id, Request request, RequestCallbacks callbacks,
      const Limits& limits, const Tokenizer* tokenizer);

  RequestId id() const { return id_; }
  SequenceState& state() { return state_; }

  // A pass with it begins; true for the first one.
  bool Begin();

  // The row behind tokens[index] of the state: scores the next token if it is
  // there, else samples it. Errors: Sampler's.
  Status TakeLogits(int64_t index, const LogitRow& row);
  // BatchToken::choices of its rows.
  int64_t choices() const { return request_.logprobs ? 0 : sampler_.choices(); }
  // The hidden state of the next token that wants one.
  void TakeHidden(std::span<const float> hidden);
  // Nothing more is to be computed.
  bool finished() const { return finished_; }
  int64_t generated_tokens() const {
    return std::ssize(result_.generated.tokens);
  }

  // Ends it: hands over the rest of the text and the result. Once.
  void Deliver(const Status& status);

 private:
  using Clock = std::chrono::steady_clock;

  ActiveRequest(RequestId id, Request request, RequestCallbacks callbacks,
                const Limits& limits, const Tokenizer* tokenizer,
                Sampler sampler);
  // Without the padding; of a row that has all.
  std::span<const float> AllowedLogits(const LogitRow& row) const;
  void Accept(TokenId token);
  void Finish(FinishReason reason);
  void Emit(const std::string& text);

  const RequestId id_;
  const Request request_;
  const RequestCallbacks callbacks_;
  const Limits limits_;
  const Tokenizer& tokenizer_;
  const Clock::time_point submitted_ = Clock::now();
  SequenceState state_;
  Sampler sampler_;
  TextStream stream_;
  std::optional<HiddenPool> pool_;  // of a request for an embedding
  RequestResult result_;
  bool begun_ = false;
  bool finished_ = false;
  Status callback_status_;  // what on_text made of it
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_ACTIVE_REQUEST_H_
