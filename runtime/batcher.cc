#include "runtime/batcher.h"

#include <limits>
#include <utility>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

SequenceScheduler::Limits LimitsOf(const EngineOptions& options) {
  return {.tokens = options.batch_tokens,
          .logit_rows = options.logit_rows,
          .sequences = options.max_sequences};
}

}  // namespace

StatusOr<std::unique_ptr<Batcher>> Batcher::Create(EngineCore* core) {
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, core->model->tokenizer());
  return std::unique_ptr<Batcher>(new Batcher(core, tokenizer));
}

Batcher::Batcher(EngineCore* core, const Tokenizer* tokenizer)
    : core_(core),
      tokenizer_(tokenizer),
      queue_length_(core->options.queue_length),
      scheduler_(&core->cache.pool(), LimitsOf(core->options)),
      thread_([this] { Run(); }) {}

Batcher::~Batcher() { Stop(); }

void Batcher::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_ = true;
  changed_.notify_all();
  const std::lock_guard lock(join_mutex_);
  if (thread_.joinable()) thread_.join();
}

StatusOr<RequestId> Batcher::Submit(Request request, RequestCallbacks callbacks,
                                    WhenFull when_full) {
  if (request.embed && !request.embed->pooling) {
    ASSIGN_OR_RETURN(request.embed->pooling,
                     DefaultPooling(core_->model->checkpoint().metadata()));
  }
  std::unique_lock lock(mutex_);
  const auto has_room = [&] {
    return stop_ || std::ssize(waiting_) < queue_length_;
  };
  if (when_full == WhenFull::kRefuse && !has_room()) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the queue is full: %d requests wait already", queue_length_));
  }
  changed_.wait(lock, has_room);
  if (stop_) return absl::CancelledError("the engine is being closed");
  ASSIGN_OR_RETURN(auto active,
                   ActiveRequest::Create(last_id_ + 1, std::move(request),
                                         std::move(callbacks),
                                         {.context = core_->options.context,
                                          .vocab = core_->model->vocab_size()},
                                         tokenizer_));
  const RequestId id = ++last_id_;
  submitted_.push_back(std::move(active));
  alive_.insert(id);
  waiting_.insert(id);
  ++stats_.submitted;
  lock.unlock();
  changed_.notify_all();
  return id;
}

void Batcher::Cancel(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    if (!alive_.contains(id)) return;
    cancelled_.insert(id);
  }
  changed_.notify_all();
}

void Batcher::Drain() {
  std::unique_lock lock(mutex_);
  const RequestId last = last_id_;
  changed_.wait(
      lock, [&] { return alive_.empty() ? !in_run_ : *alive_.begin() > last; });
}

BatchStats Batcher::stats() const {
  const std::lock_guard lock(mutex_);
  BatchStats stats = stats_;
  stats.waiting = std::ssize(waiting_);
  stats.running = std::ssize(alive_) - stats.waiting;
  return stats;
}

void Batcher::Run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] {
        return stop_ || !submitted_.empty() || !scheduler_.empty();
      });
      if (stop_) break;
      in_run_ = true;
    }
    TakeSubmitted();
    EndCancelled();
    if (!scheduler_.empty()) {
      phase_ = NextPhase();
      const Status status =
          core_->RunPasses(this, std::numeric_limits<int64_t>::max());
      if (!status.ok()) EndAll(status);
    }
    {
      const std::lock_guard lock(mutex_);
      in_run_ = false;
    }
    changed_.notify_all();
  }
  TakeSubmitted();
  while (!active_.empty())
    EndAll(absl::CancelledError("the engine is being closed"));
}

void Batcher::TakeSubmitted() {
  std::deque<std::unique_ptr<ActiveRequest>> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(submitted_);
  }
  for (auto& request : taken) {
    SequenceState* const state = &request->state();
    active_.emplace(state, std::move(request));
    scheduler_.Add(state);
  }
}

void Batcher::EndCancelled() {
  std::set<RequestId> cancelled;
  {
    const std::lock_guard lock(mutex_);
    cancelled.swap(cancelled_);
  }
  if (cancelled.empty()) return;
  TakeSubmitted();  // what is cancelled may be among them
  std::vector<ActiveRequest*> ended;
  for (const auto& [state, request] : active_)
    if (cancelled.contains(request->id())) ended.push_back(request.get());
  for (ActiveRequest* request : ended)
    End(request, absl::CancelledError("cancelled"));
}

Status Batcher::NextBatch(Batch* batch) {
  TakeSubmitted();
  int64_t reused = 0;
  std::vector<RequestId> begun;
  for (const SequenceSlice& slice : scheduler_.Compose()) {
    SequenceState& state = *slice.sequence;
    ActiveRequest& request = *active_.at(&state);
    if (request.Begin()) {
      begun.push_back(request.id());
      reused += state.reused_tokens;
    }
    const bool hidden = state.row_kind == RowKind::kHidden;
    for (int64_t i = slice.begin; i < slice.begin + slice.count; ++i) {
      const bool wanted = i >= slice.begin + slice.count - slice.rows;
      batch->push_back({.id = state.tokens[static_cast<size_t>(i)],
                        .position = i,
                        .sequence = &state.kv,
                        .wants_logits = wanted && !hidden,
                        .choices = request.choices(),
                        .wants_hidden = wanted && hidden});
    }
  }
  {
    const std::lock_guard lock(mutex_);
    for (const RequestId id : begun) waiting_.erase(id);
    stats_.reused_tokens += reused;
  }
  if (!begun.empty()) changed_.notify_all();
  return absl::OkStatus();
}

StatusOr<bool> Batcher::Consume(const Decoder& decoder) {
  const std::span<const SequenceSlice> composed = scheduler_.slices();
  const std::vector<SequenceSlice> slices(composed.begin(), composed.end());
  scheduler_.Finish();
  int64_t logit_row = 0;
  int64_t hidden_row = 0;
  int64_t tokens = 0;
  for (const SequenceSlice& slice : slices) {
    int64_t& row =
        slice.sequence->row_kind == RowKind::kHidden ? hidden_row : logit_row;
    TakeRows(slice, decoder, row);
    row += slice.rows;
    tokens += slice.count;
  }
  {
    const std::lock_guard lock(mutex_);
    ++stats_.passes;
    stats_.computed_tokens += tokens;
  }
  EndCancelled();
  TakeSubmitted();
  // What is read ahead depends on the kind of pass, so a run has one.
  return !scheduler_.empty() && !stopping_ && NextPhase() == phase_;
}

Phase Batcher::NextPhase() const {
  const Placement& placement = core_->placement;
  if (placement.of(Phase::kDecode) == placement.of(Phase::kPrefill))
    return Phase::kDecode;
  return coldstream::PhaseOf(scheduler_.tokens_wanted());
}

void Batcher::TakeRows(const SequenceSlice& slice, const Decoder& decoder,
                       int64_t row) {
  ActiveRequest& request = *active_.at(slice.sequence);
  const bool hidden = slice.sequence->row_kind == RowKind::kHidden;
  const int64_t first = slice.begin + slice.count - slice.rows;
  for (int64_t i = 0; i < slice.rows; ++i) {
    if (hidden) {
      request.TakeHidden(decoder.hidden(row + i));
      continue;
    }
    const Status status = request.TakeLogits(first + i, decoder.row(row + i));
    if (!status.ok()) return End(&request, status);
  }
  if (request.finished()) End(&request, absl::OkStatus());
}

void Batcher::End(ActiveRequest* request, const Status& status) {
  scheduler_.Remove(&request->state());
  const auto found = active_.find(&request->state());
  const std::unique_ptr<ActiveRequest> ended = std::move(found->second);
  active_.erase(found);
  const int64_t generated = ended->generated_tokens();
  const int64_t put_back = ended->state().put_back;
  ended->Deliver(status);
  {
    const std::lock_guard lock(mutex_);
    ++(status.ok() ? stats_.finished : stats_.failed);
    stats_.generated_tokens += generated;
    stats_.put_back += put_back;
    alive_.erase(ended->id());
    waiting_.erase(ended->id());
    cancelled_.erase(ended->id());
  }
  changed_.notify_all();
}

// Those under way; if there are none, those that wait.
void Batcher::EndAll(const Status& status) {
  std::vector<ActiveRequest*> ended;
  for (SequenceState* state : scheduler_.running_sequences())
    ended.push_back(active_.at(state).get());
  if (ended.empty()) {
    for (const auto& [state, request] : active_) ended.push_back(request.get());
  }
  for (ActiveRequest* request : ended) End(request, status);
}

}  // namespace coldstream
