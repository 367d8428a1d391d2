#include "runtime/session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/engine_core.h"
#include "runtime/text_stream.h"

namespace coldstream {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

int64_t Passes(int64_t tokens, int64_t chunk) {
  return (tokens + chunk - 1) / chunk;
}

enum class WantLogits { kNone, kLast, kAll };

// Adds tokens of one sequence to a batch, with cache blocks for them. choices:
// BatchToken's.
Status AppendTokens(std::span<const TokenId> tokens, WantLogits want,
                    int64_t choices, KvCache* cache, KvSequence* sequence,
                    Batch* batch) {
  const auto count = static_cast<int64_t>(tokens.size());
  RETURN_IF_ERROR(cache->Reserve(sequence, sequence->length + count));
  for (int64_t i = 0; i < count; ++i) {
    const bool wants = want == WantLogits::kAll ||
                       (want == WantLogits::kLast && i == count - 1);
    batch->push_back({.id = tokens[static_cast<size_t>(i)],
                      .position = sequence->length + i,
                      .sequence = sequence,
                      .wants_logits = wants,
                      .choices = choices});
  }
  return absl::OkStatus();
}

// Feeds a fixed list of tokens in chunks.
class EvaluateClient final : public PassClient {
 public:
  EvaluateClient(std::span<const TokenId> tokens, int64_t chunk,
                 Session::Logits which, const Session::LogitsSink& on_logits,
                 KvCache* cache, KvSequence* sequence)
      : tokens_(tokens),
        chunk_(static_cast<size_t>(chunk)),
        which_(which),
        on_logits_(on_logits),
        cache_(cache),
        sequence_(sequence) {}

  Status NextBatch(Batch* batch) override {
    count_ = std::min(chunk_, tokens_.size() - fed_);
    const bool last = fed_ + count_ == tokens_.size();
    const WantLogits want = which_ == Session::Logits::kAll ? WantLogits::kAll
                            : last                          ? WantLogits::kLast
                                                            : WantLogits::kNone;
    return AppendTokens(tokens_.subspan(fed_, count_), want, /*choices=*/0,
                        cache_, sequence_, batch);
  }

  StatusOr<bool> Consume(const Decoder& decoder) override {
    sequence_->length += static_cast<int64_t>(count_);
    fed_ += count_;
    const auto first = static_cast<int64_t>(fed_) - decoder.logit_rows();
    for (int64_t row = 0; row < decoder.logit_rows(); ++row)
      RETURN_IF_ERROR(on_logits_(first + row, decoder.logits(row)));
    return fed_ < tokens_.size();
  }

  Phase PhaseOf(int64_t pass) const override {
    const size_t before = static_cast<size_t>(pass) * chunk_;
    return coldstream::PhaseOf(static_cast<int64_t>(
        std::min(chunk_, tokens_.size() - std::min(before, tokens_.size()))));
  }

 private:
  std::span<const TokenId> tokens_;
  size_t chunk_;
  Session::Logits which_;
  const Session::LogitsSink& on_logits_;
  KvCache* cache_;
  KvSequence* sequence_;
  size_t fed_ = 0;
  size_t count_ = 0;  // of the pass under way
};

// Feeds the prompt, then samples one token a pass.
class GenerateClient final : public PassClient {
 public:
  GenerateClient(const GenerateRequest& request, const Session::TextSink& sink,
                 const Tokenizer& tokenizer, Sampler sampler, EngineCore* core,
                 KvSequence* sequence, SessionTimes* times)
      : request_(request),
        sink_(sink),
        tokenizer_(tokenizer),
        sampler_(std::move(sampler)),
        core_(core),
        sequence_(sequence),
        times_(times),
        stream_(request.stop),
        begin_(Clock::now()) {
    for (TokenId id : request.prompt) sampler_.Accept(id);
  }

  Status NextBatch(Batch* batch) override {
    const std::vector<TokenId>& prompt = request_.prompt;
    if (fed_ == prompt.size()) {
      count_ = 1;
      return AppendTokens({&next_, 1}, WantLogits::kLast, sampler_.choices(),
                          &core_->cache, sequence_, batch);
    }
    count_ = std::min(static_cast<size_t>(core_->options.batch_tokens),
                      prompt.size() - fed_);
    const WantLogits want =
        fed_ + count_ == prompt.size() ? WantLogits::kLast : WantLogits::kNone;
    return AppendTokens(std::span(prompt).subspan(fed_, count_), want,
                        sampler_.choices(), &core_->cache, sequence_, batch);
  }

  StatusOr<bool> Consume(const Decoder& decoder) override {
    sequence_->length += static_cast<int64_t>(count_);
    fed_ = std::min(fed_ + count_, request_.prompt.size());
    times_->prompt_tokens = static_cast<int64_t>(fed_);
    if (decoder.logit_rows() == 0) return true;
    if (result_.tokens.empty()) {
      times_->prompt_seconds = SecondsSince(begin_);
      first_token_ = Clock::now();
      stats_at_first_token_ = core_->stats();
    }
    if (request_.max_tokens == 0) return Finish(FinishReason::kLength);
    ASSIGN_OR_RETURN(
        next_, sampler_.SampleRow(decoder.row(0), core_->model->vocab_size()));
    return Accept();
  }

  Phase PhaseOf(int64_t pass) const override {
    const int64_t chunk = core_->options.batch_tokens;
    const int64_t left = std::ssize(request_.prompt) - pass * chunk;
    return coldstream::PhaseOf(std::clamp<int64_t>(left, 1, chunk));
  }

  void FlushText() { Emit(stream_.Flush()); }
  GenerateResult TakeResult() { return std::move(result_); }

 private:
  // Takes the sampled token; true if another one is wanted.
  bool Accept() {
    if (!request_.ignore_end_of_generation &&
        tokenizer_.IsEndOfGeneration(next_))
      return Finish(FinishReason::kEndOfGeneration);
    sampler_.Accept(next_);
    result_.tokens.push_back(next_);
    times_->generated_tokens = static_cast<int64_t>(result_.tokens.size());
    times_->generation_seconds = SecondsSince(first_token_);
    times_->generation = Since(stats_at_first_token_, core_->stats());
    Emit(stream_.Push(tokenizer_.Decode(next_)));
    if (stream_.stopped()) return Finish(FinishReason::kStopString);
    const auto generated = static_cast<int64_t>(result_.tokens.size());
    if (generated == request_.max_tokens ||
        sequence_->length >= core_->options.context)
      return Finish(FinishReason::kLength);
    return true;
  }

  bool Finish(FinishReason reason) {
    result_.finish = reason;
    FlushText();
    return false;
  }

  void Emit(const std::string& text) {
    if (text.empty()) return;
    result_.text += text;
    if (sink_) sink_(text);
  }

  const GenerateRequest& request_;
  const Session::TextSink& sink_;
  const Tokenizer& tokenizer_;
  Sampler sampler_;
  EngineCore* core_;
  KvSequence* sequence_;
  SessionTimes* times_;
  TextStream stream_;
  GenerateResult result_;
  size_t fed_ = 0;    // prompt tokens evaluated
  size_t count_ = 0;  // tokens of the pass under way
  TokenId next_ = 0;
  Clock::time_point begin_;
  Clock::time_point first_token_;
  EngineStats stats_at_first_token_;
};

}  // namespace

Session::Session(EngineCore* core) : core_(core) {}
Session::~Session() { Reset(); }

int64_t Session::length() const { return sequence_.length; }

void Session::Reset() { core_->cache.Release(&sequence_); }

Status Session::CheckRoom(int64_t tokens) const {
  if (core_->batching) {
    return absl::FailedPreconditionError(
        "the engine works on submitted requests; sessions need one of their "
        "own");
  }
  if (tokens == 0)
    return absl::InvalidArgumentError("the prompt is empty: no tokens to feed");
  const int64_t room = core_->options.context - sequence_.length;
  if (tokens <= room) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the prompt has %d tokens but the context has room for %d of %d; raise "
      "-c or shorten the prompt",
      tokens, room, core_->options.context));
}

Status Session::Evaluate(std::span<const TokenId> tokens, int64_t chunk,
                         Logits which, const LogitsSink& on_logits) {
  times_ = {};
  RETURN_IF_ERROR(CheckRoom(static_cast<int64_t>(tokens.size())));
  const EngineOptions& options = core_->options;
  const int64_t most =
      which == Logits::kAll ? options.logit_rows : options.batch_tokens;
  if (chunk < 1 || chunk > most) {
    return absl::InvalidArgumentError(
        absl::StrFormat("chunk of %d tokens, expected 1..%d", chunk, most));
  }
  EvaluateClient client(tokens, chunk, which, on_logits, &core_->cache,
                        &sequence_);
  const Clock::time_point begin = Clock::now();
  const Status status = core_->RunPasses(
      &client, Passes(static_cast<int64_t>(tokens.size()), chunk));
  times_.prompt_tokens = static_cast<int64_t>(tokens.size());
  times_.prompt_seconds = SecondsSince(begin);
  return status;
}

StatusOr<GenerateResult> Session::Generate(const GenerateRequest& request,
                                           const TextSink& on_text) {
  times_ = {};
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  RETURN_IF_ERROR(CheckRoom(prompt));
  if (request.max_tokens < -1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "max_tokens is %d, expected 0 or more, or -1 for no limit",
        request.max_tokens));
  }
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, core_->model->tokenizer());
  ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create(request.sampling));
  GenerateClient client(request, on_text, *tokenizer, std::move(sampler), core_,
                        &sequence_, &times_);
  // The last pass is known in advance unless the text ends earlier, so that
  // nothing is read ahead for a pass that never comes.
  const int64_t room = core_->options.context - sequence_.length - prompt;
  int64_t decode_passes = room;
  if (request.max_tokens >= 0)
    decode_passes =
        std::min(room, std::max<int64_t>(request.max_tokens - 1, 0));
  Status status = core_->RunPasses(
      &client, Passes(prompt, core_->options.batch_tokens) + decode_passes);
  if (!status.ok()) {
    client.FlushText();  // what was held back is the caller's too
    return status;
  }
  return client.TakeResult();
}

}  // namespace coldstream
