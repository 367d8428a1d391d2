// The policy of a Reader, over any ReadBackend.
//
// One thread owns the backend. It cuts requests into chunks first come first
// served, urgent ones first, keeps up to `depth` of them in flight, and refills
// in batches: one wait, all results at hand, then every free place is filled
// again, so that a thread that gets the CPU rarely still keeps the disk busy.
//
// What becomes of an answer: short, continued from an aligned start; 0 before
// the end, DataLoss; EAGAIN and EINTR, tried again after a pause that doubles,
// up to a bound; EINVAL on a direct read, that file goes on buffered with one
// warning (file systems exist that accept O_DIRECT at open only); anything
// else, Internal. A request ends once, when nothing of it is in flight.
//
// Invariant: each chunk in flight or waiting for its pause holds one place;
// places in all = depth.
// Thread-safety: as Reader. Shared state is behind mutex_, a std::mutex: TSan
// cannot see into Debian's absl::Mutex and reports false races.
#ifndef COLDSTREAM_IO_READ_SCHEDULER_H_
#define COLDSTREAM_IO_READ_SCHEDULER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "io/read_backend.h"
#include "io/read_chunk.h"
#include "io/reader.h"

namespace coldstream {

class ReadScheduler final : public Reader {
 public:
  // Starts the thread and, on it, the backend. Errors: the backend's
  // (Unavailable).
  static StatusOr<std::unique_ptr<ReadScheduler>> Start(
      std::vector<std::shared_ptr<File>> files, const ReaderOptions& options,
      std::unique_ptr<ReadBackend> backend);
  ~ReadScheduler() override;

  void AddWarning(std::string warning);

  void Submit(std::span<const ReadWindow> windows, ReadPriority priority,
              ReadCompletion* completion) override;
  void CancelQueued() override;
  void RegisterBuffers(std::span<const std::span<std::byte>> buffers) override;
  uint64_t registered_buffer_bytes() const override;
  const char* backend_name() const override { return backend_->name(); }
  ReaderStats stats() const override;
  bool direct(int file) const override;
  std::vector<std::string> warnings() const override;

 private:
  using Clock = std::chrono::steady_clock;

  struct Request;
  using Requests = std::list<Request>;  // splice keeps iterators valid
  struct Request {
    ChunkCutter rest;  // what is not cut yet
    ReadCompletion* completion = nullptr;
    Status status;              // the first error
    bool cancelled = false;     // whole only if nothing is to be read again
    bool begun = false;         // a chunk of it was issued
    int open_chunks = 0;        // places held
    Requests* queue = nullptr;  // the list it is in
  };

  // A chunk in flight, or waiting for its pause to end.
  struct Place {
    Requests::iterator request;
    ReadChunk chunk;
    bool buffered = false;
    int fruitless = 0;  // answers in a row that brought no block
    Clock::time_point due;
  };

  ReadScheduler(std::vector<std::shared_ptr<File>> files,
                const ReaderOptions& options,
                std::unique_ptr<ReadBackend> backend);
  Status CheckWindows(std::span<const ReadWindow> windows) const;

  // The reader thread. TakeNews waits while there is nothing to do, takes what
  // other threads left, and is false once all is done and the reader goes.
  void Run();
  bool TakeNews();
  bool Idle() const;
  bool HasNewsLocked() const;
  bool MustEndWaitLocked() const;
  void Accept(Requests* arrived, Requests* queue);
  void CancelOwn();
  void RegisterNow(const std::vector<std::span<std::byte>>& buffers);
  void WaitForResults();
  void Deliver();

  // Fills the free places.
  void Issue();
  void PushDue();
  void Push(uint32_t place);

  void Handle(const RawResult& result);
  void HandleBytes(uint32_t place, uint64_t bytes);
  void HandleErrno(uint32_t place, int error);
  // Reads on, unless the request was cancelled meanwhile.
  void Continue(uint32_t place);
  // The same after a pause; false if that was done `bound` times.
  bool Pause(uint32_t place, int bound);
  void FallBackToBuffered(int file, int error);
  // The place's chunk is over, well or with an error.
  void Release(uint32_t place, Status status);
  void FailRequest(Requests::iterator request, Status status);
  void FinishIfOver(Requests::iterator request);
  void FailEverything(const Status& status);
  Status ErrorFor(const ReadChunk& chunk, int error) const;
  Status TooShort(const ReadChunk& chunk, uint64_t got) const;

  const std::vector<std::shared_ptr<File>> files_;
  const uint64_t chunk_bytes_;
  const std::unique_ptr<ReadBackend> backend_;
  std::vector<std::atomic<bool>> direct_;  // written by the reader thread

  // The reader thread's own.
  Requests urgent_;
  Requests normal_;
  Requests issued_;    // wholly cut, or failed: chunks still in flight
  Requests finished_;  // to be delivered
  std::vector<Place> places_;
  std::vector<uint32_t> free_places_;
  std::vector<uint32_t> paused_;
  std::vector<RawResult> results_;
  int in_flight_ = 0;
  Status broken_;  // the backend failed as a whole
  ReaderStats tally_;

  mutable std::mutex mutex_;
  std::condition_variable news_;    // to the reader thread
  std::condition_variable answer_;  // to Start and RegisterBuffers
  Requests new_urgent_;
  Requests new_normal_;
  const std::vector<std::span<std::byte>>* registration_ = nullptr;
  uint64_t registered_bytes_ = 0;
  bool registration_seen_ = false;  // the thread waits for the last read
  bool cancel_ = false;
  bool stop_ = false;
  bool stop_seen_ = false;
  bool waiting_ = false;      // the thread is in the backend's Wait
  bool wake_needed_ = false;  // and news should end it: places are free
  bool started_ = false;
  Status start_status_;
  ReaderStats stats_;
  std::optional<Clock::time_point> busy_since_;
  std::vector<std::string> warnings_;

  std::thread thread_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_IO_READ_SCHEDULER_H_
