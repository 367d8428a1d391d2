// Many requests at once on one engine: a thread that runs passes while there is
// something to run, each with the tokens that runtime/sequence_scheduler.h
// picks.
//
//   Batcher batcher(core, {.queue_length = 64});
//   batcher.Submit(request, callbacks, Batcher::WhenFull::kWait);
//   batcher.Drain();
//
// A pass that fails ends every request under way with its error; those that
// wait go on in the next one. Beside a device that leaves some of the work to
// the CPU, what a request's tokens share a pass with decides which side
// computes them, and so their last bits. Thread-safety: all methods from any
// thread; callbacks come on the batcher's.
#ifndef COLDSTREAM_RUNTIME_BATCHER_H_
#define COLDSTREAM_RUNTIME_BATCHER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/status.h"
#include "runtime/active_request.h"
#include "runtime/engine_core.h"
#include "runtime/request.h"
#include "runtime/sequence_scheduler.h"

namespace coldstream {

class Batcher final : private PassClient {
 public:
  // `core` must outlive it; nobody else runs passes on it meanwhile. Errors: a
  // model without a tokenizer.
  static StatusOr<std::unique_ptr<Batcher>> Create(EngineCore* core);
  // As Stop.
  ~Batcher() override;

  enum class WhenFull { kWait, kRefuse };
  // Errors: ActiveRequest::Create's; ResourceExhausted where the queue is full
  // and `when_full` says so. After an error no callback comes.
  StatusOr<RequestId> Submit(Request request, RequestCallbacks callbacks,
                             WhenFull when_full);
  // Ends it with Cancelled within a pass; nothing if it has ended.
  void Cancel(RequestId id);
  // Ends every request with Cancelled and refuses new ones. Waits for it.
  void Stop();
  // Waits until every request submitted so far has ended, and, if there are no
  // others, until the engine rests.
  void Drain();

  BatchStats stats() const;

 private:
  explicit Batcher(EngineCore* core, const Tokenizer* tokenizer);

  Status NextBatch(Batch* batch) override;
  StatusOr<bool> Consume(const Decoder& decoder) override;
  Phase PhaseOf(int64_t) const override { return phase_; }
  bool stopped() const override { return stopping_; }

  void Run();
  // What others have asked for, on the batcher's thread.
  void TakeSubmitted();
  void EndCancelled();
  // Of a slice whose first row is row `row` of its kind in the pass.
  void TakeRows(const SequenceSlice& slice, const Decoder& decoder,
                int64_t row);
  void End(ActiveRequest* request, const Status& status);
  void EndAll(const Status& status);
  // The kind of pass that is due. All are one kind to an engine that does not
  // tell them apart.
  Phase NextPhase() const;

  EngineCore* const core_;
  const Tokenizer* const tokenizer_;
  const int64_t queue_length_;

  // The batcher's thread's.
  SequenceScheduler scheduler_;
  Phase phase_ = Phase::kDecode;  // of the passes being run
  std::map<const SequenceState*, std::unique_ptr<ActiveRequest>> active_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::unique_ptr<ActiveRequest>> submitted_;
  std::set<RequestId> cancelled_;
  std::set<RequestId> alive_;    // submitted and not ended
  std::set<RequestId> waiting_;  // of those, in no pass yet
  RequestId last_id_ = 0;
  BatchStats stats_;
  bool stop_ = false;
  bool in_run_ = false;  // passes are being run
  std::atomic<bool> stopping_{false};
  std::mutex join_mutex_;
  std::thread thread_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_BATCHER_H_
