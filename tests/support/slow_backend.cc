#include "tests/support/slow_backend.h"

#include <algorithm>

#include "base/check.h"

namespace coldstream {

std::function<std::unique_ptr<ReadBackend>(std::unique_ptr<ReadBackend>)>
SlowBackend::Wrap(const SlowDisk& disk) {
  return [disk](std::unique_ptr<ReadBackend> inner) {
    return std::make_unique<SlowBackend>(std::move(inner), disk);
  };
}

SlowBackend::Clock::time_point SlowBackend::DueNow(uint64_t bytes) {
  const auto jitter = static_cast<uint64_t>(disk_.jitter.count());
  const std::chrono::microseconds late(
      static_cast<int64_t>(jitter == 0 ? 0 : random_() % (jitter + 1)));
  const std::chrono::duration<double> transfer(static_cast<double>(bytes) /
                                               disk_.bytes_per_second);
  pipe_free_ = std::max(pipe_free_, Clock::now() + disk_.latency + late) +
               std::chrono::duration_cast<Clock::duration>(transfer);
  return pipe_free_;
}

void SlowBackend::Push(const RawRead& read) {
  CHECK(inside_.emplace(read.tag, DueNow(read.length)).second);
  inner_->Push(read);
}

bool SlowBackend::Deliver(std::vector<RawResult>* results) {
  const Clock::time_point now = Clock::now();
  const size_t before = results->size();
  std::erase_if(held_, [&](const Held& held) {
    if (held.due > now) return false;
    results->push_back(held.result);
    return true;
  });
  return results->size() > before;
}

Status SlowBackend::Wait(std::vector<RawResult>* results) {
  // The inner one is fast: what is in it is soon here, to be held back.
  if (!inside_.empty() || held_.empty()) {
    std::vector<RawResult> inner_results;
    RETURN_IF_ERROR(inner_->Wait(&inner_results));
    for (const RawResult& result : inner_results) {
      const auto node = inside_.extract(result.tag);
      CHECK(!node.empty());
      held_.push_back({result, node.mapped()});
    }
  }
  std::unique_lock<std::mutex> lock(mutex_);
  while (!Deliver(results) && !woken_ && !held_.empty()) {
    const auto first = std::min_element(
        held_.begin(), held_.end(),
        [](const Held& a, const Held& b) { return a.due < b.due; });
    changed_.wait_until(lock, first->due);
  }
  woken_ = false;
  return absl::OkStatus();
}

void SlowBackend::Wake() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }
  inner_->Wake();
}

}  // namespace coldstream
