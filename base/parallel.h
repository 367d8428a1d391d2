// The only way to go wide: row ranges over a fixed number of threads.
//
// Kernels are single-threaded over a range; Parallel hands them ranges. Work is
// isolated: a thread waiting inside For never picks up an unrelated task (such
// as a flow-graph node), so a kernel cannot be re-entered on its own stack.
// Results never depend on the thread count, because a range boundary never
// splits a sum.
//
//   parallel.For(rows, /*grain=*/16, [&](int64_t begin, int64_t end) { ... });
//
// Thread-safety: For may be called from one thread at a time, and from inside a
// body. Two Parallels are independent.
#ifndef COLDSTREAM_BASE_PARALLEL_H_
#define COLDSTREAM_BASE_PARALLEL_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace coldstream {

class Parallel {
 public:
  // `threads` >= 1, the calling thread included.
  explicit Parallel(int threads);
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  int threads() const;

  // Calls body(begin, end) for disjoint ranges that cover [0, count), every
  // begin a multiple of `grain`. `body` must not throw. When *cancel becomes
  // true, ranges not yet begun are skipped (see set_cancel).
  void For(int64_t count, int64_t grain,
           absl::FunctionRef<void(int64_t begin, int64_t end)> body);

  // A flag looked at between ranges; nullptr for none. The flag must outlive
  // its use here. After a cancelled For the results are incomplete and must be
  // thrown away.
  void set_cancel(const std::atomic<bool>* cancel);

  // Runs body on a thread of the arena and waits: how a flow graph is made to
  // use the same threads as its kernels.
  void Execute(absl::FunctionRef<void()> body);

 private:
  struct Arena;
  std::unique_ptr<Arena> arena_;
  const std::atomic<bool>* cancel_ = nullptr;
};

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_PARALLEL_H_
