#include "scheduler/uploader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace coldstream {

StatusOr<std::unique_ptr<Uploader>> Uploader::Create(const Parts& parts) {
  CHECK(parts.slots >= 1 && parts.staging->size() >= 1);
  std::unique_ptr<Uploader> uploader(new Uploader(parts));
  ASSIGN_OR_RETURN(uploader->copy_stream_, parts.device->NewStream());
  for (int slot = 0; slot < parts.slots; ++slot) {
    ASSIGN_OR_RETURN(std::unique_ptr<Event> ready, parts.device->NewEvent());
    ASSIGN_OR_RETURN(std::unique_ptr<Event> used, parts.device->NewEvent());
    uploader->ready_.push_back(std::move(ready));
    uploader->used_.push_back(std::move(used));
  }
  uploader->number_.resize(static_cast<size_t>(parts.slots));
  for (size_t i = parts.staging->size(); i > 0; --i)
    uploader->free_staging_.push_back(static_cast<int>(i - 1));
  uploader->watcher_ = std::thread([u = uploader.get()] { u->WatchCopies(); });
  return uploader;
}

Uploader::~Uploader() {
  if (!watcher_.joinable()) return;
  (void)Drain().ok();  // who wanted to know has asked
  SettleStream(copy_stream_.get());
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

void Uploader::AcquireStaging(StagingUser* user) {
  int buffer;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_staging_.empty()) {
      waiting_.push_back(user);
      return;
    }
    buffer = free_staging_.back();
    free_staging_.pop_back();
  }
  user->OnStaging(buffer);
}

void Uploader::ReleaseStaging(int buffer) {
  StagingUser* next = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.empty()) {
      free_staging_.push_back(buffer);
    } else {
      next = waiting_.front();
      waiting_.pop_front();
    }
  }
  if (next != nullptr) next->OnStaging(buffer);
}

StatusOr<Uploader::Interval> Uploader::NewInterval() {
  Interval interval;
  ASSIGN_OR_RETURN(interval.begin, parts_.device->NewEvent());
  ASSIGN_OR_RETURN(interval.end, parts_.device->NewEvent());
  return interval;
}

StatusOr<Uploader::Interval> Uploader::TakeInterval() {
  if (idle_.empty()) return NewInterval();
  Interval interval = std::move(idle_.back());
  idle_.pop_back();
  return interval;
}

Status Uploader::Queue(const Copy& copy, const Interval& time) {
  const auto slot = static_cast<size_t>(copy.slot);
  RETURN_IF_ERROR(copy_stream_->Wait(*used_[slot]));
  RETURN_IF_ERROR(copy_stream_->Record(time.begin.get()));
  RETURN_IF_ERROR(copy_stream_->CopyToDevice(copy.to, copy.from, copy.bytes));
  RETURN_IF_ERROR(copy_stream_->Record(ready_[slot].get()));
  return copy_stream_->Record(time.end.get());
}

Status Uploader::Upload(const Copy& copy) {
  Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status = error_;
    if (status.ok()) {
      StatusOr<Interval> time = TakeInterval();
      status = time.status();
      if (status.ok()) {
        status = Queue(copy, *time);
        // Part of it may be queued: the buffer is in use until that is done.
        number_[static_cast<size_t>(copy.slot)] = ++queued_;
        in_flight_.push_back({copy, queued_, *std::move(time)});
        if (!status.ok()) Fail(status);
        changed_.notify_all();
        return status;
      }
    }
  }
  if (copy.staging >= 0) ReleaseStaging(copy.staging);
  return status;
}

Status Uploader::WaitReady(int slot) {
  const auto index = static_cast<size_t>(slot);
  if (waits_used_ == waits_.size()) {
    ASSIGN_OR_RETURN(Interval wait, NewInterval());
    waits_.push_back(std::move(wait));
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    consumed_ = std::max(consumed_, number_[index]);
  }
  const Interval& wait = waits_[waits_used_++];
  RETURN_IF_ERROR(parts_.compute->Record(wait.begin.get()));
  RETURN_IF_ERROR(parts_.compute->Wait(*ready_[index]));
  return parts_.compute->Record(wait.end.get());
}

Status Uploader::RecordUse(int slot) {
  return parts_.compute->Record(used_[static_cast<size_t>(slot)].get());
}

StatusOr<double> Uploader::EndPass() {
  double seconds = 0;
  const size_t waits = std::exchange(waits_used_, 0);
  for (size_t i = 0; i < waits; ++i) {
    ASSIGN_OR_RETURN(const double wait,
                     waits_[i].end->SecondsSince(*waits_[i].begin));
    seconds += wait;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return finished_ >= consumed_; });
  RETURN_IF_ERROR(error_);
  return seconds;
}

Status Uploader::Drain() {
  waits_used_ = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return finished_ == queued_; });
  return std::exchange(error_, absl::OkStatus());
}

UploadStats Uploader::stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

// A separate thread, because a copy's end is seen by waiting for it and no
// other thread may stand still for that.
void Uploader::WatchCopies() {
  for (;;) {
    InFlight upload;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !in_flight_.empty(); });
      if (in_flight_.empty()) return;
      upload = std::move(in_flight_.front());
      in_flight_.pop_front();
    }
    FinishCopy(std::move(upload));
  }
}

void Uploader::FinishCopy(InFlight upload) {
  const Status status = upload.time.end->Wait();
  // The error may be of other work, and the copy still on its way.
  if (!status.ok()) {
    std::lock_guard<std::mutex> lock(mutex_);
    SettleStream(copy_stream_.get());
  }
  StatusOr<double> seconds = 0.0;
  if (status.ok()) seconds = upload.time.end->SecondsSince(*upload.time.begin);
  const Copy& copy = upload.copy;
  if (parts_.trace != nullptr && seconds.ok()) {
    const int64_t now = TraceNow();
    parts_.trace->Span({TraceLane::kUpload, copy.name,
                        now - static_cast<int64_t>(*seconds * 1e9), now,
                        copy.pass, copy.bytes});
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status.ok()) Fail(status);
    if (status.ok() && seconds.ok()) {
      stats_.bytes += copy.bytes;
      stats_.busy_seconds += *seconds;
    }
  }
  if (copy.staging >= 0) ReleaseStaging(copy.staging);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    finished_ = upload.number;
    idle_.push_back(std::move(upload.time));
  }
  changed_.notify_all();
}

void Uploader::Fail(const Status& status) {
  if (error_.ok()) error_ = status;
}

}  // namespace coldstream
