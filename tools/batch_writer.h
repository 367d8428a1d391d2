// Finished lines to a sink, in the order asked for, on a thread of its own, so
// that neither the reader of requests nor the engine waits for the disk.
//
//   BatchWriter writer(&sink, {.order = BatchWriter::Order::kInput});
//   ASSIGN_OR_RETURN(ticket, writer.Admit());      // before a request starts
//   writer.Deliver(ticket, line);                  // when it has ended
//   RETURN_IF_ERROR(writer.Finish());
//
// At most `most_outstanding` tickets are admitted and not written: Admit waits.
// It also waits while more than `most_bytes` of finished lines wait (for their
// turn, or for a slow disk), so that results are held in bounded memory; what
// is at work then can still be delivered, so nothing ever stands still for
// good: the ticket that all others wait for is always among those admitted.
// Errors: the sink's first, from then on by all calls; lines then are dropped.
// Thread-safety: all methods from any thread, but Finish once.
#ifndef COLDSTREAM_TOOLS_BATCH_WRITER_H_
#define COLDSTREAM_TOOLS_BATCH_WRITER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/status.h"
#include "tools/line_sink.h"

namespace coldstream {

class BatchWriter {
 public:
  enum class Order {
    kCompletion,  // as they end
    kInput,       // as they were admitted
  };
  struct Options {
    Order order = Order::kCompletion;
    int64_t most_outstanding = 1024;
    uint64_t most_bytes = uint64_t{32} << 20;
    // The sink is synced when so much time has passed since it was, if there is
    // something to sync; and by Finish.
    std::chrono::milliseconds sync_interval = std::chrono::seconds(5);
  };
  using Ticket = int64_t;

  // `sink` must outlive it.
  BatchWriter(LineSink* sink, const Options& options);
  // Writes what can be written, without a sync.
  ~BatchWriter();
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;

  StatusOr<Ticket> Admit();
  // `line` as LineSink wants it. Each ticket is delivered or abandoned once.
  void Deliver(Ticket ticket, std::string line);
  // It ended without a line (the job was interrupted). In the order of the
  // input nothing behind it is written any more: it could not be put in its
  // place later.
  void Abandon(Ticket ticket);

  // Waits until all that was admitted is written, and syncs.
  Status Finish();

  int64_t written() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool HasRoom() const;
  // The next line may be written.
  bool HasNext() const;
  // There is something to sync, and its time has come.
  bool MustSync() const;
  // Nothing is left to do, or nothing can be done any more.
  bool IsAtRest() const;
  void Run();
  void WaitForWork(std::unique_lock<std::mutex>* lock);
  void WriteNext(std::unique_lock<std::mutex>* lock);
  // One call of the sink, without the lock; its error becomes ours.
  Status Call(std::unique_lock<std::mutex>* lock,
              const std::function<Status()>& call);

  LineSink* const sink_;
  const Options options_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable room_;
  std::condition_variable work_;
  std::condition_variable rest_;
  Ticket next_ticket_ = 0;
  Ticket next_to_write_ = 0;  // kInput
  Ticket first_abandoned_ = INT64_MAX;
  int64_t outstanding_ = 0;
  std::map<Ticket, std::string> ready_;
  uint64_t ready_bytes_ = 0;
  int64_t written_ = 0;
  bool unsynced_ = false;
  Clock::time_point unsynced_since_;
  bool calling_ = false;  // the sink, right now
  bool finish_ = false;   // sync as soon as all is written
  bool stop_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_WRITER_H_
