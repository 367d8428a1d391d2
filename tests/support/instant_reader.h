// A Reader whose requests are done as soon as its thread sees them. For
// measuring what is around the reading.
#ifndef COLDSTREAM_TESTS_SUPPORT_INSTANT_READER_H_
#define COLDSTREAM_TESTS_SUPPORT_INSTANT_READER_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/reader.h"

namespace coldstream {

class InstantReader final : public Reader {
 public:
  InstantReader() : thread_([this] { Serve(); }) {}
  ~InstantReader() override {
    {
      std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void Submit(std::span<const ReadWindow>, ReadPriority,
              ReadCompletion* completion) override {
    {
      std::lock_guard lock(mutex_);
      arrived_.push_back(completion);
    }
    changed_.notify_one();
  }
  void CancelQueued() override {}
  void RegisterBuffers(std::span<const std::span<std::byte>>) override {}
  uint64_t registered_buffer_bytes() const override { return 0; }
  const char* backend_name() const override { return "instant"; }
  ReaderStats stats() const override { return {}; }
  bool direct(int) const override { return true; }
  std::vector<std::string> warnings() const override { return {}; }

 private:
  void Serve() {
    std::vector<ReadCompletion*> now;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return quit_ || !arrived_.empty(); });
        if (arrived_.empty()) return;
        now.swap(arrived_);
      }
      for (ReadCompletion* completion : now)
        completion->OnRead(absl::OkStatus());
      now.clear();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ReadCompletion*> arrived_;
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_INSTANT_READER_H_
