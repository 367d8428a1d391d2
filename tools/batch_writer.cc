#include "tools/batch_writer.h"

#include <utility>

#include "base/check.h"

namespace coldstream {

BatchWriter::BatchWriter(LineSink* sink, const Options& options)
    : sink_(sink), options_(options) {
  CHECK(options_.most_outstanding > 0);
  thread_ = std::thread([this] { Run(); });
}

BatchWriter::~BatchWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  thread_.join();
}

bool BatchWriter::HasRoom() const {
  return outstanding_ < options_.most_outstanding &&
         ready_bytes_ <= options_.most_bytes;
}

bool BatchWriter::HasNext() const {
  if (ready_.empty() || !status_.ok()) return false;
  return options_.order == Order::kCompletion ||
         ready_.begin()->first == next_to_write_;
}

bool BatchWriter::MustSync() const {
  if (!unsynced_ || !status_.ok()) return false;
  return (finish_ && outstanding_ == 0) ||
         Clock::now() >= unsynced_since_ + options_.sync_interval;
}

bool BatchWriter::IsAtRest() const {
  if (calling_) return false;
  return !status_.ok() || (outstanding_ == 0 && !unsynced_);
}

StatusOr<BatchWriter::Ticket> BatchWriter::Admit() {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return HasRoom() || !status_.ok(); });
  RETURN_IF_ERROR(status_);
  ++outstanding_;
  return next_ticket_++;
}

void BatchWriter::Deliver(Ticket ticket, std::string line) {
  {
    const std::lock_guard lock(mutex_);
    CHECK(outstanding_ > 0 && ticket < next_ticket_);
    const bool misplaced =
        options_.order == Order::kInput && ticket > first_abandoned_;
    if (status_.ok() && !misplaced) {
      ready_bytes_ += line.size();
      CHECK(ready_.emplace(ticket, std::move(line)).second);
    } else {
      --outstanding_;
    }
  }
  work_.notify_all();
  room_.notify_all();
  rest_.notify_all();
}

void BatchWriter::Abandon(Ticket ticket) {
  {
    const std::lock_guard lock(mutex_);
    CHECK(outstanding_ > 0 && ticket < next_ticket_);
    --outstanding_;
    if (options_.order == Order::kInput && ticket < first_abandoned_) {
      first_abandoned_ = ticket;
      for (auto late = ready_.upper_bound(ticket); late != ready_.end();) {
        ready_bytes_ -= late->second.size();
        --outstanding_;
        late = ready_.erase(late);
      }
    }
  }
  work_.notify_all();  // all may be written now, and the end waits for a sync
  room_.notify_all();
  rest_.notify_all();
}

Status BatchWriter::Finish() {
  std::unique_lock lock(mutex_);
  finish_ = true;
  work_.notify_all();
  rest_.wait(lock, [this] { return IsAtRest(); });
  return status_;
}

int64_t BatchWriter::written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

void BatchWriter::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    WaitForWork(&lock);
    if (HasNext()) {
      WriteNext(&lock);
    } else if (stop_) {
      return;
    }
    if (MustSync()) {
      unsynced_ = false;
      (void)Call(&lock, [this] { return sink_->Sync(); });
    }
    room_.notify_all();
    rest_.notify_all();
  }
}

void BatchWriter::WaitForWork(std::unique_lock<std::mutex>* lock) {
  const auto ready = [this] { return HasNext() || MustSync() || stop_; };
  if (unsynced_ && status_.ok()) {
    work_.wait_until(*lock, unsynced_since_ + options_.sync_interval, ready);
  } else {
    work_.wait(*lock, ready);
  }
}

void BatchWriter::WriteNext(std::unique_lock<std::mutex>* lock) {
  const auto next = ready_.extract(ready_.begin());
  const std::string& line = next.mapped();
  const Status appended = Call(lock, [&] { return sink_->Append(line); });
  ready_bytes_ -= line.size();
  --outstanding_;
  ++next_to_write_;
  if (!appended.ok()) return;
  ++written_;
  if (!unsynced_) unsynced_since_ = Clock::now();
  unsynced_ = true;
}

Status BatchWriter::Call(std::unique_lock<std::mutex>* lock,
                         const std::function<Status()>& call) {
  calling_ = true;
  lock->unlock();
  const Status status = call();
  lock->lock();
  calling_ = false;
  if (status_.ok()) status_ = status;
  return status;
}

}  // namespace coldstream
