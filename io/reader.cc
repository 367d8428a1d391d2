#include "io/reader.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "io/pread_backend.h"
#include "io/read_scheduler.h"
#include "io/uring_backend.h"

namespace coldstream {
namespace {

constexpr int kMaxPreadThreads = 1024;

Status CheckOptions(const ReaderOptions& options) {
  if (options.depth < 1 || options.depth > kMaxIoDepth) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "I/O depth %d is not in 1..%d", options.depth, kMaxIoDepth));
  }
  if (options.chunk_bytes < kMinIoChunkBytes ||
      options.chunk_bytes > kMaxIoChunkBytes ||
      options.chunk_bytes % kMinIoChunkBytes != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "I/O chunk of %d bytes is not a multiple of %d in %d..%d",
        options.chunk_bytes, kMinIoChunkBytes, kMinIoChunkBytes,
        kMaxIoChunkBytes));
  }
  if (options.pread_threads < 0 || options.pread_threads > kMaxPreadThreads) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d read threads are not in 0..%d",
                        options.pread_threads, kMaxPreadThreads));
  }
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<ReadScheduler>> StartOver(
    std::unique_ptr<ReadBackend> backend,
    const std::vector<std::shared_ptr<File>>& files,
    const ReaderOptions& options) {
  if (options.wrap_backend) backend = options.wrap_backend(std::move(backend));
  return ReadScheduler::Start(files, options, std::move(backend));
}

// The completion of ReadAndWait.
class Waiter final : public ReadCompletion {
 public:
  void OnRead(Status status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    status_ = std::move(status);
    done_ = true;
    // Under the lock: the waiter, and with it this, is gone right after.
    done_changed_.notify_one();
  }
  Status Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    done_changed_.wait(lock, [this] { return done_; });
    return status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  Status status_;
};

}  // namespace

StatusOr<std::unique_ptr<Reader>> Reader::Create(
    const std::vector<std::shared_ptr<File>>& files,
    const ReaderOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  std::string fallback;
  if (options.backend != IoBackendKind::kPread) {
    auto reader =
        StartOver(MakeUringBackend(files, options.depth), files, options);
    if (reader.ok()) return std::unique_ptr<Reader>(*std::move(reader));
    if (options.backend == IoBackendKind::kUring) return reader.status();
    fallback = absl::StrCat(MessageOf(reader.status()),
                            "; reading with pread threads instead");
  }
  const int threads = options.pread_threads > 0
                          ? options.pread_threads
                          : DefaultPreadThreads(options.depth);
  ASSIGN_OR_RETURN(auto reader,
                   StartOver(MakePreadBackend(files, options.depth, threads),
                             files, options));
  if (!fallback.empty()) reader->AddWarning(std::move(fallback));
  return std::unique_ptr<Reader>(std::move(reader));
}

Status ReadAndWait(Reader& reader, std::span<const ReadWindow> windows,
                   ReadPriority priority) {
  Waiter waiter;
  reader.Submit(windows, priority, &waiter);
  return waiter.Wait();
}

}  // namespace coldstream
