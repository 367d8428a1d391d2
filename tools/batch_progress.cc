#include "tools/batch_progress.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"
#include "base/system_limits.h"
#include "tools/byte_size.h"
#include "tools/status_line.h"

namespace coldstream {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(500);

double RateOf(double amount, double seconds) {
  return seconds > 0 ? amount / seconds : 0;
}

}  // namespace

std::string BatchProgressText(const BatchProgress& progress,
                              const BatchStats& batch, const EngineStats& used,
                              double seconds) {
  std::string text = absl::StrFormat(
      "%d done, %d failed, %d at work, %.1f tok/s",
      progress.done_before + progress.succeeded, progress.failed,
      batch.running + batch.waiting,
      RateOf(static_cast<double>(batch.computed_tokens), seconds));
  if (used.disk_busy_seconds > 0) {
    absl::StrAppendFormat(&text, ", disk %.2f GB/s",
                          RateOf(static_cast<double>(used.bytes_from_disk),
                                 used.disk_busy_seconds) /
                              1e9);
  }
  // By the bytes of the input that are behind us.
  if (progress.bytes_read > 0 && progress.bytes >= progress.bytes_read) {
    const double left = static_cast<double>(progress.bytes) /
                            static_cast<double>(progress.bytes_read) -
                        1;
    const auto eta = static_cast<int64_t>(left * seconds);
    absl::StrAppendFormat(&text, ", ETA %d:%02d", eta / 60, eta % 60);
  }
  return text;
}

std::string BatchSummary(const Engine& engine, const BatchProgress& progress) {
  const BatchStats batch = engine.batch_stats();
  const EngineStats used = engine.stats();
  std::string text = absl::StrFormat(
      "%d requests done, %d failed, %d were done before\n", progress.succeeded,
      progress.failed, progress.done_before);
  absl::StrAppendFormat(&text,
                        "%d tokens computed in %d passes, %d generated, %d "
                        "taken over from common "
                        "beginnings; requests made room %d times\n",
                        batch.computed_tokens, batch.passes,
                        batch.generated_tokens, batch.reused_tokens,
                        batch.put_back);
  absl::StrAppendFormat(
      &text,
      "%.2f tok/s generated in %.2f s; %s from disk, %.2f GB/s while reading; "
      "memory %s at peak of %s\n",
      RateOf(static_cast<double>(batch.generated_tokens), used.run_seconds),
      used.run_seconds, FormatByteSize(used.bytes_from_disk),
      RateOf(static_cast<double>(used.bytes_from_disk),
             used.disk_busy_seconds) /
          1e9,
      FormatByteSize(PeakRssBytes()), FormatByteSize(engine.plan().budget));
  return text;
}

BatchProgressLine::BatchProgressLine(const Engine& engine, const BatchRun& run)
    : engine_(engine), run_(run), begin_(std::chrono::steady_clock::now()) {
  if (!CanShowStatus(STDERR_FILENO)) return;
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!stop_changed_.wait_for(lock, kInterval, [this] { return stop_; }))
      Draw();
  });
}

BatchProgressLine::~BatchProgressLine() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  thread_.join();
  std::fputs("\r\x1b[K", stderr);
}

void BatchProgressLine::Draw() {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_)
          .count();
  std::fprintf(stderr, "\r\x1b[K%s",
               BatchProgressText(run_.progress(), engine_.batch_stats(),
                                 engine_.stats(), seconds)
                   .c_str());
}

}  // namespace coldstream
