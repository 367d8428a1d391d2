#include "tests/support/fake_reader.h"

#include <chrono>
#include <utility>

namespace coldstream {

FakeReader::FakeReader(const Options& options)
    : options_(options), random_(options.seed), thread_([this] { Serve(); }) {}

FakeReader::~FakeReader() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::byte FakeReader::ByteAt(int file, uint64_t offset) {
  const uint64_t mixed =
      (offset + static_cast<uint64_t>(file) * 7919) * 0x9e3779b97f4a7c15u;
  return static_cast<std::byte>(mixed >> 56);
}

void FakeReader::Submit(std::span<const ReadWindow> windows, ReadPriority,
                        ReadCompletion* completion) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(
        {submitted_++, {windows.begin(), windows.end()}, completion});
    max_in_flight_ = std::max(max_in_flight_, ++in_flight_);
  }
  changed_.notify_all();
}

void FakeReader::CancelQueued() {
  std::deque<Request> dropped;
  {
    std::lock_guard lock(mutex_);
    dropped.swap(queue_);
    in_flight_ -= static_cast<int>(dropped.size());
  }
  for (const Request& request : dropped)
    request.completion->OnRead(absl::CancelledError("cancelled"));
}

ReaderStats FakeReader::stats() const {
  std::lock_guard lock(mutex_);
  ReaderStats stats;
  stats.bytes = bytes_;
  return stats;
}

void FakeReader::Serve() {
  for (;;) {
    Request request;
    int delay_us = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return quit_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const size_t pick = options_.reorder ? random_() % queue_.size() : 0;
      request = std::move(queue_[pick]);
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(pick));
      if (options_.max_delay_us > 0) {
        delay_us = static_cast<int>(
            random_() % static_cast<uint64_t>(options_.max_delay_us + 1));
      }
    }
    if (delay_us > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
    Status status;
    if (request.number == options_.fail_request) {
      status = absl::DataLossError("the fake disk failed");
    } else {
      for (const ReadWindow& window : request.windows)
        for (uint64_t i = 0; i < window.length; ++i)
          window.destination[i] = ByteAt(window.file, window.offset + i);
    }
    {
      std::lock_guard lock(mutex_);
      --in_flight_;
      if (status.ok())
        for (const ReadWindow& window : request.windows)
          bytes_ += window.length;
    }
    request.completion->OnRead(status);
  }
}

}  // namespace coldstream
