// Brings weight units from host memory into a device's slots, on a copy stream,
// while the compute stream works on the slots before.
//
// The protocol, per slot, none of it blocking the host:
//
//   copy:     Wait(used)   copy   Record(ready)        Upload
//   compute:  Wait(ready)  kernels  Record(used)       WaitReady, RecordUse
//
// so a slot is overwritten only after its last consumer, and read only after
// its copy. A staging buffer is overwritten only after the copy from it: it
// goes back to the pool when a thread of the uploader has seen the copy's
// event.
//
//   uploader->AcquireStaging(&read);            // OnStaging(buffer), maybe
//   later
//   ... read fills uploader->staging(buffer) ...
//   uploader->Upload({.slot = s, .from = ..., .to = ..., .staging = buffer});
//   uploader->WaitReady(s);  RunUnit(...);  uploader->RecordUse(s);
//
// Thread-safety: AcquireStaging, ReleaseStaging, Upload and stats from any
// thread; WaitReady, RecordUse and EndPass from the one that runs the stages; a
// slot's calls in the order above.
// Errors: the device's. That of a copy comes back from the next Upload and from
// EndPass, so that no result of a pass is used that a failed copy went into;
// Drain returns and forgets it.
#ifndef COLDSTREAM_SCHEDULER_UPLOADER_H_
#define COLDSTREAM_SCHEDULER_UPLOADER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/device.h"
#include "base/staging_ring.h"
#include "base/status.h"
#include "base/trace.h"

namespace coldstream {

// Who waits for a staging buffer. OnStaging is called once, on the caller's
// thread or the uploader's, and must not block.
class StagingUser {
 public:
  virtual ~StagingUser() = default;
  virtual void OnStaging(int buffer) = 0;
};

struct UploadStats {
  uint64_t bytes = 0;
  double busy_seconds = 0;  // of the device's clock, copies alone
};

class Uploader {
 public:
  // What an uploader works with; all of it must outlive the uploader.
  struct Parts {
    Device* device = nullptr;
    Stream* compute = nullptr;
    StagingRing* staging = nullptr;
    int slots = 1;
    TraceSink* trace = nullptr;  // upload spans; may be null
  };
  struct Copy {
    int slot = 0;
    const std::byte* from = nullptr;  // host; stays until the copy is done
    std::byte* to = nullptr;          // device
    size_t bytes = 0;
    int staging = -1;  // goes back to the pool after the copy; -1: none
    std::string_view name = {};  // for the trace; lives as long as the engine
    int64_t pass = -1;
  };

  static StatusOr<std::unique_ptr<Uploader>> Create(const Parts& parts);
  // Waits for what is queued.
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  std::span<std::byte> staging(int buffer) const {
    return parts_.staging->buffer(static_cast<size_t>(buffer));
  }
  void AcquireStaging(StagingUser* user);
  void ReleaseStaging(int buffer);  // of one that is not uploaded after all

  // A copy that cannot be queued gives its staging buffer back.
  Status Upload(const Copy& copy);

  Status WaitReady(int slot);
  Status RecordUse(int slot);

  // After the compute stream was synchronised: waits until the copies it waited
  // for are known to have succeeded. Returns the seconds since the last call
  // that it stood still for them.
  StatusOr<double> EndPass();

  // Waits until nothing is queued or in a staging buffer that was uploaded.
  // Returns and forgets the first error.
  Status Drain();

  UploadStats stats() const;

 private:
  struct Interval {  // of the device's clock
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
  };
  struct InFlight {
    Copy copy;
    int64_t number = 0;
    Interval time;
  };

  explicit Uploader(const Parts& parts) : parts_(parts) {}
  StatusOr<Interval> NewInterval();
  StatusOr<Interval> TakeInterval();  // needs mutex_
  Status Queue(const Copy& copy, const Interval& time);
  void WatchCopies();
  void FinishCopy(InFlight upload);
  void Fail(const Status& status);  // needs mutex_

  const Parts parts_;
  std::unique_ptr<Stream> copy_stream_;
  std::vector<std::unique_ptr<Event>> ready_;  // by slot
  std::vector<std::unique_ptr<Event>> used_;   // by slot

  // The run thread's.
  std::vector<Interval> waits_;
  size_t waits_used_ = 0;
  int64_t consumed_ = 0;  // number of the latest copy waited for

  mutable std::mutex mutex_;  // guards what follows, and the copy stream
  std::condition_variable changed_;
  std::deque<InFlight> in_flight_;  // in the copy stream's order
  std::vector<int64_t> number_;     // by slot: of its latest copy
  int64_t queued_ = 0;              // copies queued so far
  int64_t finished_ = 0;  // of them, seen to be done or to have failed
  std::vector<Interval> idle_;
  std::vector<int> free_staging_;
  std::deque<StagingUser*> waiting_;
  Status error_;
  UploadStats stats_;
  bool stop_ = false;
  std::thread watcher_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_UPLOADER_H_
