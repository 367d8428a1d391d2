#include "io/pread_backend.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

class PreadBackend final : public ReadBackend {
 public:
  PreadBackend(std::vector<std::shared_ptr<File>> files, int depth, int threads)
      : files_(std::move(files)),
        depth_(depth),
        thread_count_(std::min(depth, threads)) {}

  ~PreadBackend() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closing_ = true;
      work_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }

  Status Start() override {
    // The pool may be smaller than asked for, but not empty.
    try {
      for (int i = 0; i < thread_count_; ++i) {
        threads_.emplace_back([this] { Work(); });
      }
    } catch (const std::system_error& error) {
      if (threads_.empty()) {
        return absl::UnavailableError(absl::StrFormat(
            "cannot start a thread for reading: %s", error.what()));
      }
    }
    return absl::OkStatus();
  }

  int capacity() const override { return depth_; }

  void Push(const RawRead& read) override { pushed_.push_back(read); }

  Status Wait(std::vector<RawResult>* results) override {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!pushed_.empty()) {
      reads_.insert(reads_.end(), pushed_.begin(), pushed_.end());
      if (pushed_.size() == 1) {
        work_.notify_one();
      } else {
        work_.notify_all();
      }
      pushed_.clear();
    }
    changed_.wait(lock, [this] { return woken_ || !results_.empty(); });
    woken_ = false;
    results->insert(results->end(), results_.begin(), results_.end());
    results_.clear();
    return absl::OkStatus();
  }

  void Wake() override {
    std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }

  StatusOr<uint64_t> RegisterBuffers(
      std::span<const std::span<std::byte>>) override {
    return uint64_t{0};
  }

  const char* name() const override { return "pread"; }

 private:
  void Work() {
    (void)pthread_setname_np(pthread_self(), "coldstream-read");
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      work_.wait(lock, [this] { return closing_ || !reads_.empty(); });
      if (reads_.empty()) return;
      const RawRead read = reads_.front();
      reads_.pop_front();
      lock.unlock();
      const RawResult result{read.tag, Read(read)};
      lock.lock();
      if (results_.empty()) changed_.notify_one();
      results_.push_back(result);
    }
  }

  int32_t Read(const RawRead& read) const {
    const File& file = *files_[static_cast<size_t>(read.file)];
    const int fd = read.buffered ? file.buffered_fd() : file.fd();
    const ssize_t bytes = pread(fd, read.destination, read.length,
                                static_cast<off_t>(read.offset));
    return static_cast<int32_t>(bytes < 0 ? -errno : bytes);
  }

  const std::vector<std::shared_ptr<File>> files_;
  const int depth_;
  const int thread_count_;
  std::vector<RawRead> pushed_;  // the owner's

  std::mutex mutex_;
  std::condition_variable work_;     // to the pool
  std::condition_variable changed_;  // to the owner
  std::deque<RawRead> reads_;
  std::vector<RawResult> results_;
  bool woken_ = false;
  bool closing_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace

int DefaultPreadThreads(int depth) { return std::min(depth, 16); }

std::unique_ptr<ReadBackend> MakePreadBackend(
    std::vector<std::shared_ptr<File>> files, int depth, int threads) {
  return std::make_unique<PreadBackend>(std::move(files), depth, threads);
}

}  // namespace coldstream
