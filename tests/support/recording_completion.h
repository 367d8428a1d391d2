// A ReadCompletion for tests: waits, and knows how often it was called.
#ifndef COLDSTREAM_TESTS_SUPPORT_RECORDING_COMPLETION_H_
#define COLDSTREAM_TESTS_SUPPORT_RECORDING_COMPLETION_H_

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/status.h"
#include "io/reader.h"

namespace coldstream {

class RecordingCompletion final : public ReadCompletion {
 public:
  void OnRead(Status status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    status_ = std::move(status);
    ++calls_;
    changed_.notify_all();
  }

  // Waits for the first call and returns its status.
  Status Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return calls_ > 0; });
    return status_;
  }

  int calls() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Status status_;
  int calls_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_RECORDING_COMPLETION_H_
