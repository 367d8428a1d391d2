// A ReadBackend without a kernel: a script answers each read, when the test
// lets it.
//
// Reads are logged in the order in which they were pushed. While the gate is
// shut nothing is answered; Wake returns from Wait all the same.
// Thread-safety: the test's methods from any thread.
#ifndef COLDSTREAM_TESTS_SUPPORT_SCRIPTED_BACKEND_H_
#define COLDSTREAM_TESTS_SUPPORT_SCRIPTED_BACKEND_H_

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/read_backend.h"

namespace coldstream {

class ScriptedBackend final : public ReadBackend {
 public:
  // The bytes "read", 0 or -errno, given the read and its number.
  using Script = std::function<int32_t(const RawRead& read, size_t number)>;

  // What outlives the backend, for the test to look at and to steer by.
  struct Control {
    std::mutex mutex;
    std::condition_variable changed;
    bool gate_open = true;
    bool woken = false;
    Status start;
    Status wait;  // once not ok, every Wait is that
    std::vector<RawRead> log;
    size_t most_in_flight = 0;

    void Open() {
      std::lock_guard<std::mutex> lock(mutex);
      gate_open = true;
      changed.notify_all();
    }
    void Break(Status status) {
      std::lock_guard<std::mutex> lock(mutex);
      wait = std::move(status);
      changed.notify_all();
    }
    // Waits until so many reads have been pushed.
    void AwaitPushed(size_t count) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return log.size() >= count; });
    }
    std::vector<RawRead> Log() {
      std::lock_guard<std::mutex> lock(mutex);
      return log;
    }
  };

  ScriptedBackend(Control* control, int capacity, Script script)
      : control_(control), capacity_(capacity), script_(std::move(script)) {}

  Status Start() override { return control_->start; }
  int capacity() const override { return capacity_; }
  void Push(const RawRead& read) override {
    std::lock_guard<std::mutex> lock(control_->mutex);
    results_.push_back({read.tag, script_(read, control_->log.size())});
    control_->log.push_back(read);
    control_->most_in_flight =
        std::max(control_->most_in_flight, results_.size());
    control_->changed.notify_all();
  }
  Status Wait(std::vector<RawResult>* results) override {
    std::unique_lock<std::mutex> lock(control_->mutex);
    control_->changed.wait(lock, [this] {
      return control_->woken || !control_->wait.ok() ||
             (control_->gate_open && !results_.empty());
    });
    control_->woken = false;
    if (!control_->wait.ok()) return control_->wait;
    if (!control_->gate_open || results_.empty()) return absl::OkStatus();
    results->push_back(results_.front());
    results_.erase(results_.begin());
    return absl::OkStatus();
  }
  void Wake() override {
    std::lock_guard<std::mutex> lock(control_->mutex);
    control_->woken = true;
    control_->changed.notify_all();
  }
  StatusOr<uint64_t> RegisterBuffers(
      std::span<const std::span<std::byte>>) override {
    return absl::ResourceExhaustedError("no buffers here");
  }
  const char* name() const override { return "scripted"; }

 private:
  Control* const control_;
  const int capacity_;
  const Script script_;
  std::vector<RawResult> results_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_SCRIPTED_BACKEND_H_
