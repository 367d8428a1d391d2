// The queues of a DeferredDevice and the seeded choice of what runs next.
//
// Every operation lies in the queue of its stream. One that waits for a mark
// blocks its stream until the mark is done; of the other streams any may take
// the next step. Marks are made before whatever waits for them, so some stream
// always can: waiting never hangs.
//
// Errors: Internal of an operation that was told to fail, given once, by the
// next call that returns a Status.
// Thread-safety: all of it; kernels run with the mutex held.
#ifndef COLDSTREAM_TESTS_SUPPORT_DEFERRED_WORK_H_
#define COLDSTREAM_TESTS_SUPPORT_DEFERRED_WORK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <vector>

#include "base/status.h"
#include "tests/support/deferred_device.h"

namespace coldstream {

// One Record: the end of the work queued on its stream before it.
struct WorkMark {
  size_t stream = 0;
  bool done = false;  // under the mutex of the DeferredWork
  uint64_t step = 0;  // the clock then
};

class DeferredWork {
 public:
  DeferredWork(uint64_t seed, const DeviceFaults& faults);
  ~DeferredWork();

  size_t AddStream();
  Status Copy(size_t stream, std::byte* to, const std::byte* from,
              size_t bytes);
  void Kernel(size_t stream, std::function<void()> kernel);
  StatusOr<std::shared_ptr<const WorkMark>> Record(size_t stream);
  // `mark` may be null: nothing to wait for.
  Status WaitFor(size_t stream, std::shared_ptr<const WorkMark> mark);

  // The host waits: for all that is queued on a stream, or for a mark.
  Status Finish(size_t stream);
  Status Finish(const WorkMark* mark);
  // Whether the mark is done; takes at least one step, so that polling ends.
  bool Poll(const WorkMark* mark);

  // Errors: FailedPrecondition (null, or not done).
  StatusOr<double> SecondsBetween(const WorkMark* from, const WorkMark* to);

  // True if a queued copy reads or writes any of `memory`.
  bool NeedsMemory(std::span<const std::byte> memory);

 private:
  struct Operation {
    enum class Kind { kCopy, kKernel, kRecord, kWait };
    Kind kind;
    bool fails = false;
    bool poisoned = false;  // of a copy: its first step is done
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    size_t bytes = 0;
    std::function<void()> kernel = {};
    std::shared_ptr<WorkMark> record = {};
    std::shared_ptr<const WorkMark> wait = {};
  };
  struct Queue {
    uint64_t weight = 1;  // how often it is chosen
    std::deque<Operation> operations;
  };
  enum class Eagerness { kNone, kSome, kAll, kMixed };

  // All below with the mutex held.
  void Push(size_t stream, Operation operation);
  // What calls that need not wait do, by eagerness.
  void Wander();
  // Does work until `done`; what is needed for it lies on `stream`.
  void RunUntil(size_t stream, const std::function<bool()>& done);
  // One step of any stream that can take one; false if none can.
  bool StepAny();
  // One step of `stream`, or of what it waits for.
  void StepToward(size_t stream);
  // One step of a stream that can take one.
  void Step(size_t stream);
  // Drops waits that are over from the head of the queue.
  bool CanStep(size_t stream);
  // True when the head operation is over.
  bool Work(Operation* operation);
  uint64_t Draw(uint64_t below);
  Status TakeError();

  const DeviceFaults faults_;
  // Guards all below. std::mutex: TSan cannot see into Debian's absl::Mutex.
  std::mutex mutex_;
  std::mt19937_64 random_;
  Eagerness eagerness_;
  bool waits_narrowly_;
  std::vector<Queue> queues_;
  uint64_t clock_ = 0;
  int64_t copies_ = 0;
  int64_t kernels_ = 0;
  Status error_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_DEFERRED_WORK_H_
