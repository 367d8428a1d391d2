#include "base/parallel.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace coldstream {

struct Parallel::Arena {
  explicit Arena(int threads) : arena(threads) {
    // An explicit thread count wins over the CPUs there are, which takes a
    // process-wide setting. Of several such settings oneTBB obeys the lowest,
    // so none is made where the default will do: a narrow arena must not slow a
    // wide one, or the program around us. Two, because asynchronous nodes of a
    // flow graph need a worker beside the waiting thread.
    const int needed = std::max(threads, 2);
    if (needed > oneapi::tbb::info::default_concurrency()) {
      control.emplace(oneapi::tbb::global_control::max_allowed_parallelism,
                      static_cast<size_t>(needed));
    }
    arena.initialize();
  }
  std::optional<oneapi::tbb::global_control> control;
  oneapi::tbb::task_arena arena;
};

Parallel::Parallel(int threads) {
  CHECK(threads >= 1);
  arena_ = std::make_unique<Arena>(threads);
}

Parallel::~Parallel() = default;

int Parallel::threads() const { return arena_->arena.max_concurrency(); }

void Parallel::set_cancel(const std::atomic<bool>* cancel) { cancel_ = cancel; }

void Parallel::Execute(absl::FunctionRef<void()> body) {
  arena_->arena.execute([&] { body(); });
}

void Parallel::For(int64_t count, int64_t grain,
                   absl::FunctionRef<void(int64_t, int64_t)> body) {
  CHECK(grain >= 1);
  if (count <= 0) return;
  const int64_t steps = (count + grain - 1) / grain;
  const auto run = [&](int64_t first, int64_t last) {
    if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) return;
    body(first * grain, std::min(last * grain, count));
  };
  if (steps == 1 || threads() == 1) {
    for (int64_t step = 0; step < steps; ++step) run(step, step + 1);
    return;
  }
  arena_->arena.execute([&] {
    oneapi::tbb::this_task_arena::isolate([&] {
      oneapi::tbb::parallel_for(
          oneapi::tbb::blocked_range<int64_t>(0, steps, 1),
          [&](const oneapi::tbb::blocked_range<int64_t>& range) {
            run(range.begin(), range.end());
          });
    });
  });
}

}  // namespace coldstream
