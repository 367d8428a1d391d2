// A Reader without files: fills every byte with a value made from its offset,
// after a seeded random delay and out of order, and fails where told.
#ifndef COLDSTREAM_TESTS_SUPPORT_FAKE_READER_H_
#define COLDSTREAM_TESTS_SUPPORT_FAKE_READER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "io/reader.h"

namespace coldstream {

class FakeReader final : public Reader {
 public:
  struct Options {
    uint64_t seed = 1;
    int max_delay_us = 0;
    bool reorder = false;
    int64_t fail_request = -1;  // this request (counted from 0) fails
  };
  explicit FakeReader(const Options& options);
  ~FakeReader() override;

  // What the byte at `offset` of `file` reads as.
  static std::byte ByteAt(int file, uint64_t offset);

  void Submit(std::span<const ReadWindow> windows, ReadPriority priority,
              ReadCompletion* completion) override;
  void CancelQueued() override;
  void RegisterBuffers(std::span<const std::span<std::byte>>) override {}
  uint64_t registered_buffer_bytes() const override { return 0; }
  const char* backend_name() const override { return "fake"; }
  bool direct(int) const override { return false; }
  ReaderStats stats() const override;
  std::vector<std::string> warnings() const override { return {}; }

  int max_in_flight() const { return max_in_flight_; }

 private:
  struct Request {
    int64_t number;
    std::vector<ReadWindow> windows;
    ReadCompletion* completion;
  };
  void Serve();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> queue_;
  std::mt19937_64 random_;
  int64_t submitted_ = 0;
  int in_flight_ = 0;
  int max_in_flight_ = 0;
  uint64_t bytes_ = 0;
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_FAKE_READER_H_
