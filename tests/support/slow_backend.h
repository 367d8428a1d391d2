// A ReadBackend that makes another one as slow as a disk of fixed bandwidth.
//
// Each read takes its latency, drawn between `latency` and `latency + jitter`,
// beside the others; then its bytes pass, in the order asked for, through a
// pipe of `bytes_per_second` that all reads share. So depth hides latency, and
// nothing gets past the bandwidth. The draws are seeded.
//
//   options.wrap_backend = SlowBackend::Wrap({.bytes_per_second = 50e6});
//
// Thread-safety: as ReadBackend.
#ifndef COLDSTREAM_TESTS_SUPPORT_SLOW_BACKEND_H_
#define COLDSTREAM_TESTS_SUPPORT_SLOW_BACKEND_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/read_backend.h"

namespace coldstream {

struct SlowDisk {
  double bytes_per_second = 50e6;
  std::chrono::microseconds latency{0};
  std::chrono::microseconds jitter{0};
  uint64_t seed = 1;
};

class SlowBackend final : public ReadBackend {
 public:
  SlowBackend(std::unique_ptr<ReadBackend> inner, const SlowDisk& disk)
      : inner_(std::move(inner)), disk_(disk), random_(disk.seed) {}

  // For ReaderOptions::wrap_backend.
  static std::function<
      std::unique_ptr<ReadBackend>(std::unique_ptr<ReadBackend>)>
  Wrap(const SlowDisk& disk);

  Status Start() override { return inner_->Start(); }
  int capacity() const override { return inner_->capacity(); }
  void Push(const RawRead& read) override;
  Status Wait(std::vector<RawResult>* results) override;
  void Wake() override;
  StatusOr<uint64_t> RegisterBuffers(
      std::span<const std::span<std::byte>> buffers) override {
    return inner_->RegisterBuffers(buffers);
  }
  const char* name() const override { return inner_->name(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Held {
    RawResult result;
    Clock::time_point due;
  };

  Clock::time_point DueNow(uint64_t bytes);
  // Hands over what is due; true if anything was.
  bool Deliver(std::vector<RawResult>* results);

  const std::unique_ptr<ReadBackend> inner_;
  const SlowDisk disk_;
  std::mt19937_64 random_;
  Clock::time_point pipe_free_;
  std::unordered_map<uint64_t, Clock::time_point> inside_;  // due, by tag
  std::vector<Held> held_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_SLOW_BACKEND_H_
