#include "scheduler/file_sweep.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"

namespace coldstream {
namespace {

class Sweep {
 public:
  Sweep(Reader* reader, const FileStretch& stretch, std::span<std::byte> memory,
        uint64_t slot_bytes)
      : reader_(reader),
        stretch_(stretch),
        slot_bytes_(slot_bytes),
        next_(stretch.begin) {
    for (; memory.size() >= slot_bytes; memory = memory.subspan(slot_bytes))
      slots_.push_back({this, memory.data()});
  }

  Status Run() {
    for (Slot& slot : slots_) slot.Next();
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return finished_ == slots_.size(); });
    return status_;
  }

 private:
  // Begun on the caller's thread, goes on from the reader's.
  struct Slot final : ReadCompletion {
    Slot(Sweep* s, std::byte* m) : sweep(s), memory(m) {}

    void Next() {
      const uint64_t offset = sweep->next_.fetch_add(sweep->slot_bytes_);
      const uint64_t end = sweep->stretch_.end;
      if (offset >= end) return sweep->Finish(absl::OkStatus());
      const ReadWindow window{sweep->stretch_.file, offset,
                              std::min(sweep->slot_bytes_, end - offset),
                              memory};
      sweep->reader_->Submit({&window, 1}, ReadPriority::kNormal, this);
    }
    void OnRead(Status status) override {
      if (status.ok()) return Next();
      sweep->next_ = sweep->stretch_.end;  // the other slots stop too
      sweep->Finish(std::move(status));
    }

    Sweep* sweep;
    std::byte* memory;
  };

  void Finish(Status status) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
    ++finished_;
    // Under the lock: the waiter, and with it this, is gone right after.
    changed_.notify_one();
  }

  Reader* const reader_;
  const FileStretch stretch_;
  const uint64_t slot_bytes_;
  std::atomic<uint64_t> next_;
  std::vector<Slot> slots_;

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t finished_ = 0;
  Status status_;
};

}  // namespace

Status SweepFile(Reader* reader, const FileStretch& stretch,
                 std::span<std::byte> memory, uint64_t slot_bytes) {
  CHECK(slot_bytes > 0 && slot_bytes <= memory.size());
  return Sweep(reader, stretch, memory, slot_bytes).Run();
}

}  // namespace coldstream
