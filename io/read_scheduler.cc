#include "io/read_scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/align.h"
#include "base/check.h"

namespace coldstream {
namespace {

// Pauses: 0.1 ms doubling to 20 ms. 24 of them last about 0.35 s.
constexpr int kMaxTransientErrors = 24;
constexpr int kMaxStuckReads = 8;
constexpr std::chrono::microseconds kFirstPause{100};
constexpr std::chrono::microseconds kLongestPause{20000};

Status CancelledStatus() { return absl::CancelledError("read cancelled"); }

}  // namespace

StatusOr<std::unique_ptr<ReadScheduler>> ReadScheduler::Start(
    std::vector<std::shared_ptr<File>> files, const ReaderOptions& options,
    std::unique_ptr<ReadBackend> backend) {
  auto scheduler = std::unique_ptr<ReadScheduler>(
      new ReadScheduler(std::move(files), options, std::move(backend)));
  ReadScheduler* self = scheduler.get();
  try {
    self->thread_ = std::thread([self] { self->Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cannot start the reader's thread: %s", error.what()));
  }
  {
    std::unique_lock<std::mutex> lock(self->mutex_);
    self->answer_.wait(lock, [self] { return self->started_; });
    RETURN_IF_ERROR(self->start_status_);
  }
  return scheduler;
}

ReadScheduler::ReadScheduler(std::vector<std::shared_ptr<File>> files,
                             const ReaderOptions& options,
                             std::unique_ptr<ReadBackend> backend)
    : files_(std::move(files)),
      chunk_bytes_(options.chunk_bytes),
      backend_(std::move(backend)),
      direct_(files_.size()) {
  for (size_t i = 0; i < files_.size(); ++i) direct_[i] = files_[i]->direct();
  const int depth = std::min(options.depth, backend_->capacity());
  CHECK(depth >= 1);
  places_.resize(static_cast<size_t>(depth));
  free_places_.reserve(places_.size());
  paused_.reserve(places_.size());
  results_.reserve(places_.size());
  for (size_t i = places_.size(); i-- > 0;) {
    free_places_.push_back(static_cast<uint32_t>(i));
  }
}

ReadScheduler::~ReadScheduler() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    news_.notify_one();
    if (waiting_) backend_->Wake();
  }
  if (thread_.joinable()) thread_.join();
}

void ReadScheduler::AddWarning(std::string warning) {
  std::lock_guard<std::mutex> lock(mutex_);
  warnings_.push_back(std::move(warning));
}

void ReadScheduler::Submit(std::span<const ReadWindow> windows,
                           ReadPriority priority, ReadCompletion* completion) {
  Requests arrived;
  arrived.push_back(
      Request{.rest = ChunkCutter({windows.begin(), windows.end()}),
              .completion = completion,
              .status = CheckWindows(windows)});
  std::lock_guard<std::mutex> lock(mutex_);
  Requests& queue =
      priority == ReadPriority::kUrgent ? new_urgent_ : new_normal_;
  queue.splice(queue.end(), arrived);
  news_.notify_one();
  if (std::exchange(wake_needed_, false)) backend_->Wake();
}

void ReadScheduler::CancelQueued() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Requests* arrived : {&new_urgent_, &new_normal_}) {
    for (Request& request : *arrived) {
      if (request.status.ok()) request.status = CancelledStatus();
    }
  }
  cancel_ = true;
  news_.notify_one();
  if (waiting_) backend_->Wake();
}

Status ReadScheduler::CheckWindows(std::span<const ReadWindow> windows) const {
  for (const ReadWindow& w : windows) {
    if (w.file < 0 || static_cast<size_t>(w.file) >= files_.size()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "read of file %d, but the reader has %d", w.file, files_.size()));
    }
    RETURN_IF_ERROR(CheckWindow(w, *files_[static_cast<size_t>(w.file)]));
  }
  return absl::OkStatus();
}

void ReadScheduler::RegisterBuffers(
    std::span<const std::span<std::byte>> buffers) {
  CHECK(std::this_thread::get_id() != thread_.get_id());
  const std::vector<std::span<std::byte>> copy(buffers.begin(), buffers.end());
  std::unique_lock<std::mutex> lock(mutex_);
  answer_.wait(lock, [this] { return registration_ == nullptr; });
  registration_ = &copy;
  news_.notify_one();
  if (std::exchange(wake_needed_, false)) backend_->Wake();
  answer_.wait(lock, [&] { return registration_ != &copy; });
}

uint64_t ReadScheduler::registered_buffer_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return registered_bytes_;
}

ReaderStats ReadScheduler::stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  ReaderStats stats = stats_;
  if (busy_since_.has_value()) {
    stats.busy_seconds +=
        std::chrono::duration<double>(Clock::now() - *busy_since_).count();
  }
  return stats;
}

bool ReadScheduler::direct(int file) const {
  CHECK(file >= 0 && static_cast<size_t>(file) < files_.size());
  return direct_[static_cast<size_t>(file)];
}

std::vector<std::string> ReadScheduler::warnings() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return warnings_;
}

// ----- The reader thread -----------------------------------------------------

void ReadScheduler::Run() {
  (void)pthread_setname_np(pthread_self(), "coldstream-io");
  const Status status = backend_->Start();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    start_status_ = status;
    started_ = true;
    answer_.notify_all();
  }
  if (!status.ok()) return;
  while (TakeNews()) {
    PushDue();
    Issue();
    Deliver();
    if (in_flight_ > 0) WaitForResults();
  }
}

// Whether only another thread, or the end of a pause, can give us work.
bool ReadScheduler::Idle() const {
  return in_flight_ == 0 && finished_.empty() &&
         (free_places_.empty() || (urgent_.empty() && normal_.empty()));
}

bool ReadScheduler::HasNewsLocked() const {
  return cancel_ || registration_ != nullptr || !new_urgent_.empty() ||
         !new_normal_.empty();
}

// News that are acted upon even while every place is taken.
bool ReadScheduler::MustEndWaitLocked() const {
  return cancel_ || stop_ != stop_seen_;
}

bool ReadScheduler::TakeNews() {
  const std::vector<std::span<std::byte>>* registration = nullptr;
  bool stop = false;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (Idle() && paused_.empty()) {
      news_.wait(lock, [this] { return stop_ || HasNewsLocked(); });
    } else if (Idle()) {
      Clock::time_point due = Clock::time_point::max();
      for (uint32_t p : paused_) due = std::min(due, places_[p].due);
      news_.wait_until(lock, due, [this] { return HasNewsLocked(); });
    }
    if (std::exchange(cancel_, false)) CancelOwn();
    Accept(&new_urgent_, &urgent_);
    Accept(&new_normal_, &normal_);
    registration = registration_;
    registration_seen_ = registration != nullptr;
    stop = stop_seen_ = stop_;
  }
  if (stop) CancelOwn();
  if (registration != nullptr) {
    while (in_flight_ > 0) WaitForResults();
    RegisterNow(*registration);
  }
  return !stop || !Idle() || !paused_.empty();
}

void ReadScheduler::Accept(Requests* arrived, Requests* queue) {
  while (!arrived->empty()) {
    const Requests::iterator request = arrived->begin();
    if (request->status.ok()) request->status = broken_;
    request->queue = queue;
    queue->splice(queue->end(), *arrived, request);
    FinishIfOver(request);
  }
}

// What is in flight is left to come home; what is paused is dropped when due.
void ReadScheduler::CancelOwn() {
  for (Requests* queue : {&urgent_, &normal_}) {
    while (!queue->empty()) FailRequest(queue->begin(), CancelledStatus());
  }
  for (Request& request : issued_) request.cancelled = true;
  for (const uint32_t place : paused_) {
    FailRequest(places_[place].request, CancelledStatus());
  }
}

void ReadScheduler::RegisterNow(
    const std::vector<std::span<std::byte>>& buffers) {
  const StatusOr<uint64_t> bytes =
      broken_.ok() ? backend_->RegisterBuffers(buffers) : broken_;
  std::lock_guard<std::mutex> lock(mutex_);
  registered_bytes_ = bytes.ok() ? *bytes : 0;
  if (!bytes.ok()) warnings_.push_back(MessageOf(bytes.status()));
  registration_ = nullptr;
  registration_seen_ = false;
  answer_.notify_all();
}

void ReadScheduler::WaitForResults() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!busy_since_.has_value()) busy_since_ = Clock::now();
    // News can wait for the next result where it could not be acted upon now:
    // no place is free, or a registration waits for the last read to come in.
    const bool can_act = !free_places_.empty() && !registration_seen_;
    if (can_act && HasNewsLocked()) return;
    if (MustEndWaitLocked() && !registration_seen_) return;
    waiting_ = true;
    wake_needed_ = can_act;
  }
  results_.clear();
  const Status status = backend_->Wait(&results_);
  for (const RawResult& result : results_) Handle(result);
  if (!status.ok()) FailEverything(status);
  std::lock_guard<std::mutex> lock(mutex_);
  waiting_ = wake_needed_ = false;
  if (in_flight_ == 0) {
    const Clock::duration busy = Clock::now() - *busy_since_;
    tally_.busy_seconds += std::chrono::duration<double>(busy).count();
    busy_since_.reset();
  }
  stats_ = tally_;
}

void ReadScheduler::Deliver() {
  while (!finished_.empty()) {
    // Out of the list first: OnRead may submit, and its memory is gone after.
    Request request = std::move(finished_.front());
    finished_.pop_front();
    request.completion->OnRead(std::move(request.status));
  }
}

// ----- Reads on their way ----------------------------------------------------

void ReadScheduler::Issue() {
  while (!free_places_.empty()) {
    Requests* queue = !urgent_.empty() ? &urgent_ : &normal_;
    if (queue->empty()) return;
    const Requests::iterator request = queue->begin();
    const size_t file = static_cast<size_t>(request->rest.file());
    const uint32_t p = free_places_.back();
    free_places_.pop_back();
    places_[p] =
        Place{.request = request,
              .chunk = ReadChunk(request->rest.Next(AlignUp(
                  chunk_bytes_, BlockBytes(files_[file]->alignment())))),
              .due = {}};
    ++request->open_chunks;
    if (!std::exchange(request->begun, true)) request->completion->OnIssue();
    if (request->rest.done()) {
      issued_.splice(issued_.end(), *queue, request);
      request->queue = &issued_;
    }
    Push(p);
  }
}

void ReadScheduler::Push(uint32_t place) {
  Place& p = places_[place];
  const size_t file = static_cast<size_t>(p.chunk.file());
  p.buffered = !direct_[file];
  RawRead read = p.chunk.NextRead(files_[file]->alignment(), p.buffered);
  read.tag = place;
  backend_->Push(read);
  ++in_flight_;
}

void ReadScheduler::PushDue() {
  if (paused_.empty()) return;
  const Clock::time_point now = Clock::now();
  const auto due =
      std::partition(paused_.begin(), paused_.end(),
                     [&](uint32_t place) { return places_[place].due > now; });
  const std::vector<uint32_t> ready(due, paused_.end());
  paused_.erase(due, paused_.end());
  for (uint32_t place : ready) {
    if (places_[place].request->status.ok()) {
      Push(place);
    } else {
      Release(place, absl::OkStatus());
    }
  }
}

void ReadScheduler::Handle(const RawResult& result) {
  CHECK(result.tag < places_.size());
  const uint32_t place = static_cast<uint32_t>(result.tag);
  --in_flight_;
  ++tally_.reads;
  if (result.result > 0) tally_.bytes += static_cast<uint64_t>(result.result);
  const Place& p = places_[place];
  if (!p.request->status.ok()) {
    Release(place, absl::OkStatus());  // it has its error already
  } else if (result.result > 0) {
    HandleBytes(place, static_cast<uint64_t>(result.result));
  } else if (result.result < 0) {
    HandleErrno(place, -result.result);
  } else {
    Release(place, TooShort(p.chunk, 0));
  }
}

void ReadScheduler::HandleBytes(uint32_t place, uint64_t bytes) {
  Place& p = places_[place];
  const File& file = *files_[static_cast<size_t>(p.chunk.file())];
  switch (p.chunk.Advance(bytes, file.alignment(), p.buffered)) {
    case ReadChunk::Progress::kDone:
      Release(place, absl::OkStatus());
      return;
    case ReadChunk::Progress::kAdvanced:
      p.fruitless = 0;
      ++tally_.retries;
      Continue(place);
      return;
    case ReadChunk::Progress::kStuck:
      // Either an accident, or the file now ends inside this block.
      if (!Pause(place, kMaxStuckReads)) {
        Release(place, TooShort(p.chunk, bytes));
      }
      return;
  }
}

void ReadScheduler::HandleErrno(uint32_t place, int error) {
  Place& p = places_[place];
  if (error == EAGAIN || error == EINTR) {
    if (!Pause(place, kMaxTransientErrors)) {
      Release(place, ErrorFor(p.chunk, error));
    }
  } else if ((error == EINVAL || error == EOPNOTSUPP) && !p.buffered) {
    FallBackToBuffered(p.chunk.file(), error);
    Continue(place);
  } else {
    Release(place, ErrorFor(p.chunk, error));
  }
}

void ReadScheduler::Continue(uint32_t place) {
  if (places_[place].request->cancelled) {
    Release(place, CancelledStatus());
  } else {
    Push(place);
  }
}

bool ReadScheduler::Pause(uint32_t place, int bound) {
  Place& p = places_[place];
  if (p.fruitless == bound) return false;
  if (p.request->cancelled) {
    Release(place, CancelledStatus());
    return true;
  }
  p.due =
      Clock::now() +
      std::min(kLongestPause, kFirstPause * (1 << std::min(p.fruitless, 16)));
  ++p.fruitless;
  ++tally_.retries;
  paused_.push_back(place);
  return true;
}

void ReadScheduler::FallBackToBuffered(int file, int error) {
  std::atomic<bool>& direct = direct_[static_cast<size_t>(file)];
  if (!direct) return;  // another read of it got here first
  direct = false;
  AddWarning(absl::StrFormat(
      "%s: the file system refuses direct reads (%s); reading it through the "
      "page cache",
      files_[static_cast<size_t>(file)]->path(), std::strerror(error)));
}

// ----- Ends ------------------------------------------------------------------

void ReadScheduler::Release(uint32_t place, Status status) {
  const Requests::iterator request = places_[place].request;
  free_places_.push_back(place);
  --request->open_chunks;
  if (status.ok()) {
    FinishIfOver(request);
  } else {
    FailRequest(request, std::move(status));
  }
}

void ReadScheduler::FailRequest(Requests::iterator request, Status status) {
  if (request->status.ok()) request->status = std::move(status);
  if (request->queue != &issued_) {
    issued_.splice(issued_.end(), *request->queue, request);
    request->queue = &issued_;
  }
  FinishIfOver(request);
}

void ReadScheduler::FinishIfOver(Requests::iterator request) {
  if (request->open_chunks > 0) return;
  if (request->status.ok() && !request->rest.done()) return;
  finished_.splice(finished_.end(), *request->queue, request);
}

// The backend itself is broken: nothing will come back from it any more.
void ReadScheduler::FailEverything(const Status& status) {
  broken_ = status;
  in_flight_ = 0;
  paused_.clear();
  free_places_.clear();
  for (size_t i = places_.size(); i-- > 0;) {
    free_places_.push_back(static_cast<uint32_t>(i));
  }
  for (Requests* queue : {&urgent_, &normal_, &issued_}) {
    while (!queue->empty()) {
      const Requests::iterator request = queue->begin();
      request->open_chunks = 0;
      FailRequest(request, status);
    }
  }
}

Status ReadScheduler::ErrorFor(const ReadChunk& chunk, int error) const {
  return absl::InternalError(
      absl::StrFormat("%s: reading %d bytes at offset %d: %s",
                      files_[static_cast<size_t>(chunk.file())]->path(),
                      chunk.missing(), chunk.offset(), std::strerror(error)));
}

Status ReadScheduler::TooShort(const ReadChunk& chunk, uint64_t got) const {
  const File& file = *files_[static_cast<size_t>(chunk.file())];
  return absl::DataLossError(absl::StrFormat(
      "%s: at offset %d expected %d bytes, got %d: the file ends early (%d "
      "bytes when opened)",
      file.path(), chunk.offset(), chunk.missing(), got, file.size()));
}

}  // namespace coldstream
