#include "tests/simt/block.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "tests/simt/fiber.h"
#include "tests/simt/lane_order.h"

namespace coldstream::simt {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kMostThreads = 1024;

struct Thread {
  uint3 index = {};
  Fiber* fiber = nullptr;  // that it is stopped on
  // The barrier or operation that it waits at; meaningful while it waits.
  std::source_location where;
  bool at_block_barrier = false;
};

struct Warp {
  uint32_t live = 0;     // lanes that have not returned
  uint32_t waiting = 0;  // lanes stopped at a warp operation
  std::array<WarpOperation, kWarp> operation;
  std::array<uint32_t, kWarp> mask;
  std::array<uint64_t, kWarp> value;  // given, then the result
  std::array<int, kWarp> source;
};

// A shared array of the kernel: kept from block to block, filled anew for each.
struct SharedBlock {
  const void* site;
  size_t bytes;
  std::unique_ptr<void, void (*)(void*)> memory;
  bool fresh;  // not asked for yet by this block
};

std::unique_ptr<void, void (*)(void*)> NewSharedBytes(size_t bytes) {
  constexpr std::align_val_t kAlignment{16};
  return {::operator new(bytes, kAlignment),
          [](void* memory) { ::operator delete(memory, kAlignment); }};
}

class BlockRunner {
 public:
  void RunGrid(const LaunchShape& shape, absl::FunctionRef<void()> thread);

  void* Shared(const void* site, size_t bytes);
  void* DynamicShared() { return Shared(this, shape_->shared_bytes); }
  void Barrier(const std::source_location& where);
  uint64_t Exchange(WarpOperation operation, uint32_t mask, uint64_t value,
                    int source, const std::source_location& where);
  unsigned lane() const { return current_ % kWarp; }

 private:
  void SetBlockShape(dim3 block);
  void RunBlock();
  static void Work(void* runner);
  void StartNext();
  void Finished(unsigned thread);
  void StopCurrent();
  Fiber* TakeFiber();
  Fiber* NextToRun();

  void MakeReady(unsigned warp, uint32_t lanes);
  void ReleaseBarrierIfAllCame();
  void CompleteIfAllCame(unsigned warp, uint32_t mask);
  void Evaluate(Warp* warp, unsigned warp_index, uint32_t lanes);

  std::string Describe(unsigned thread) const;
  [[noreturn]] void Fail(const std::string& what) const;
  [[noreturn]] void FailDisagreement(unsigned a, unsigned b) const;
  [[noreturn]] void FailStuck() const;

  const LaunchShape* shape_ = nullptr;
  const absl::FunctionRef<void()>* thread_ = nullptr;
  LaneOrder order_;
  uint64_t random_ = 0;

  unsigned count_ = 0;  // threads of a block
  unsigned live_ = 0;
  unsigned at_barrier_ = 0;
  unsigned current_ = 0;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  // In the order to start them; and those that may go on, the next at the back.
  std::vector<unsigned> start_order_;
  size_t started_ = 0;
  std::vector<unsigned> ready_;

  Fiber main_;
  Fiber* running_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> free_fibers_;
  std::vector<SharedBlock> shared_;
};

BlockRunner& Runner() {
  thread_local BlockRunner runner;
  return runner;
}

void BlockRunner::RunGrid(const LaunchShape& shape,
                          absl::FunctionRef<void()> thread) {
  CHECK(thread_ == nullptr);  // no kernel launches another
  shape_ = &shape;
  thread_ = &thread;
  order_ = GetLaneOrder();
  SetBlockShape(shape.block);
  shared_.clear();
  blockDim = shape.block;
  gridDim = shape.grid;
  const uint64_t blocks = uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  if (blocks == 0 || blocks > UINT32_MAX || shape.grid.y > 65535 ||
      shape.grid.z > 65535)
    Fail("no such grid");
  random_ = order_.seed;
  const Permutation block_at(order_.kind, blocks, &random_);
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t block = block_at(i);
    random_ = (uint64_t{order_.seed} << 32) ^ block;
    blockIdx = {static_cast<unsigned>(block % shape.grid.x),
                static_cast<unsigned>(block / shape.grid.x % shape.grid.y),
                static_cast<unsigned>(block / shape.grid.x / shape.grid.y)};
    RunBlock();
  }
  shared_.clear();
  thread_ = nullptr;
}

void BlockRunner::SetBlockShape(dim3 block) {
  const uint64_t count = uint64_t{block.x} * block.y * block.z;
  if (count == 0 || count > kMostThreads || block.z > 64) Fail("no such block");
  count_ = static_cast<unsigned>(count);
  threads_.resize(count_);
  warps_.resize((count_ + kWarp - 1) / kWarp);
  start_order_.resize(count_);
  ready_.reserve(kMostThreads);
  for (unsigned t = 0; t < count_; ++t) {
    threads_[t].index = {t % block.x, t / block.x % block.y,
                         t / block.x / block.y};
  }
}

void BlockRunner::RunBlock() {
  live_ = count_;
  at_barrier_ = 0;
  started_ = 0;
  for (SharedBlock& block : shared_) block.fresh = true;
  size_t next = 0;
  const Permutation warp_at(order_.kind, warps_.size(), &random_);
  for (unsigned i = 0; i < warps_.size(); ++i) {
    const unsigned warp = static_cast<unsigned>(warp_at(i));
    const unsigned lanes = std::min(kWarp, count_ - kWarp * warp);
    warps_[warp].live = lanes == kWarp ? ~0u : (1u << lanes) - 1;
    warps_[warp].waiting = 0;
    const Permutation lane_at(order_.kind, lanes, &random_);
    for (unsigned j = 0; j < lanes; ++j)
      start_order_[next++] = kWarp * warp + static_cast<unsigned>(lane_at(j));
  }
  running_ = TakeFiber();
  Fiber::Switch(main_, *running_);
  if (live_ > 0) FailStuck();
}

// What a fiber of the pool does: starts threads while none that has begun may
// go on, then lies idle until it is taken again.
void BlockRunner::Work(void* argument) {
  BlockRunner& runner = *static_cast<BlockRunner*>(argument);
  for (;;) {
    while (runner.ready_.empty() && runner.started_ < runner.count_)
      runner.StartNext();
    Fiber& mine = *runner.running_;
    Fiber* next = runner.NextToRun();
    runner.free_fibers_.push_back(&mine);
    Fiber::Switch(mine, *next);
  }
}

void BlockRunner::StartNext() {
  const unsigned thread = start_order_[started_++];
  current_ = thread;
  threadIdx = threads_[thread].index;
  (*thread_)();
  Finished(thread);
}

void BlockRunner::Finished(unsigned thread) {
  Warp& warp = warps_[thread / kWarp];
  warp.live &= ~(1u << (thread % kWarp));
  --live_;
  ReleaseBarrierIfAllCame();
  // Others may have waited for this lane only.
  uint32_t left = warp.waiting;
  while (left != 0) {
    const uint32_t mask =
        warp.mask[static_cast<size_t>(std::countr_zero(left))];
    CompleteIfAllCame(thread / kWarp, mask);
    left &= ~mask;
  }
}

Fiber* BlockRunner::TakeFiber() {
  if (free_fibers_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(Work, this));
    return fibers_.back().get();
  }
  Fiber* fiber = free_fibers_.back();
  free_fibers_.pop_back();
  return fiber;
}

// The fiber to go on with, and makes it the running one: that of a ready
// thread, one that starts the next, or the caller of RunBlock.
Fiber* BlockRunner::NextToRun() {
  if (!ready_.empty()) {
    running_ = threads_[ready_.back()].fiber;
    ready_.pop_back();
  } else if (started_ < count_) {
    running_ = TakeFiber();
  } else {
    return &main_;
  }
  return running_;
}

// The current thread waits; returns when it has been released and is on turn.
void BlockRunner::StopCurrent() {
  const unsigned thread = current_;
  Fiber& mine = *running_;
  threads_[thread].fiber = &mine;
  Fiber* next = NextToRun();
  if (next != &mine) Fiber::Switch(mine, *next);
  running_ = &mine;
  current_ = thread;
  threadIdx = threads_[thread].index;
}

void BlockRunner::MakeReady(unsigned warp, uint32_t lanes) {
  const unsigned size = std::min(kWarp, count_ - kWarp * warp);
  const Permutation lane_at(order_.kind, size, &random_);
  for (unsigned i = size; i-- > 0;) {
    const unsigned lane = static_cast<unsigned>(lane_at(i));
    if (lanes >> lane & 1) ready_.push_back(kWarp * warp + lane);
  }
}

void BlockRunner::Barrier(const std::source_location& where) {
  Thread& self = threads_[current_];
  self.where = where;
  self.at_block_barrier = true;
  ++at_barrier_;
  ReleaseBarrierIfAllCame();
  StopCurrent();
}

void BlockRunner::ReleaseBarrierIfAllCame() {
  if (at_barrier_ == 0 || at_barrier_ < live_) return;
  at_barrier_ = 0;
  const Thread* first = nullptr;
  for (unsigned t = 0; t < count_; ++t) {
    Thread& thread = threads_[t];
    if (!thread.at_block_barrier) continue;
    if (first == nullptr) first = &thread;
    if (thread.where.line() != first->where.line() ||
        thread.where.column() != first->where.column() ||
        std::strcmp(thread.where.file_name(), first->where.file_name()) != 0) {
      Fail("threads of a block wait at different barriers: " +
           Describe(static_cast<unsigned>(first - threads_.data())) + "; " +
           Describe(t));
    }
  }
  for (Thread& thread : threads_) thread.at_block_barrier = false;
  const Permutation warp_at(order_.kind, warps_.size(), &random_);
  for (size_t i = warps_.size(); i-- > 0;) {
    const unsigned warp = static_cast<unsigned>(warp_at(i));
    MakeReady(warp, warps_[warp].live);
  }
}

uint64_t BlockRunner::Exchange(WarpOperation operation, uint32_t mask,
                               uint64_t value, int source,
                               const std::source_location& where) {
  const unsigned warp_index = current_ / kWarp;
  Warp& warp = warps_[warp_index];
  const size_t lane = current_ % kWarp;
  threads_[current_].where = where;
  if ((mask >> lane & 1) == 0)
    Fail("a lane is not in its own mask: " + Describe(current_));
  warp.operation[lane] = operation;
  warp.mask[lane] = mask;
  warp.value[lane] = value;
  warp.source[lane] = source;
  warp.waiting |= 1u << lane;
  CompleteIfAllCame(warp_index, mask);
  StopCurrent();
  return warp.value[lane];
}

void BlockRunner::CompleteIfAllCame(unsigned warp_index, uint32_t mask) {
  Warp& warp = warps_[warp_index];
  const uint32_t lanes = mask & warp.live;
  if (lanes == 0 || (warp.waiting & lanes) != lanes) return;
  const unsigned base = kWarp * warp_index;
  const unsigned first = static_cast<unsigned>(std::countr_zero(lanes));
  const std::source_location& where = threads_[base + first].where;
  for (unsigned lane = first; lane < kWarp; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::source_location& other = threads_[base + lane].where;
    if (warp.mask[lane] != mask || other.line() != where.line() ||
        other.column() != where.column() ||
        std::strcmp(other.file_name(), where.file_name()) != 0) {
      FailDisagreement(base + first, base + lane);
    }
  }
  for (uint32_t others = warp.waiting & ~lanes; others != 0;
       others &= others - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(others));
    if (warp.mask[lane] & lanes) FailDisagreement(base + first, base + lane);
  }
  Evaluate(&warp, warp_index, lanes);
  warp.waiting &= ~lanes;
  MakeReady(warp_index, lanes);
}

void BlockRunner::Evaluate(Warp* warp, unsigned warp_index, uint32_t lanes) {
  const std::array<uint64_t, kWarp> given = warp->value;
  uint32_t set = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane)
    if ((lanes >> lane & 1) != 0 && given[lane] != 0) set |= 1u << lane;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    uint64_t& result = warp->value[lane];
    switch (warp->operation[lane]) {
      case WarpOperation::kBarrier:
        break;
      case WarpOperation::kAny:
        result = set != 0;
        break;
      case WarpOperation::kAll:
        result = set == lanes;
        break;
      case WarpOperation::kBallot:
        result = set;
        break;
      case WarpOperation::kShuffle: {
        const size_t source = static_cast<size_t>(warp->source[lane]);
        if (source >= kWarp || (lanes >> source & 1) == 0) {
          Fail(absl::StrFormat("a shuffle reads lane %d, which takes no part: ",
                               warp->source[lane]) +
               Describe(kWarp * warp_index + lane));
        }
        result = given[source];
        break;
      }
    }
  }
}

void* BlockRunner::Shared(const void* site, size_t bytes) {
  for (SharedBlock& block : shared_) {
    if (block.site != site || block.bytes != bytes) continue;
    if (block.fresh) std::memset(block.memory.get(), 0xff, bytes);
    block.fresh = false;
    return block.memory.get();
  }
  shared_.push_back({site, bytes, NewSharedBytes(bytes), false});
  void* memory = shared_.back().memory.get();
  std::memset(memory, 0xff, bytes);
  size_t total = 0;
  for (const SharedBlock& block : shared_) total += block.bytes;
  // What a block may have on all cards since compute capability 7.5.
  if (total > 64 * 1024) Fail("more shared memory than a block can have");
  return memory;
}

std::string BlockRunner::Describe(unsigned thread) const {
  const Thread& t = threads_[thread];
  return absl::StrFormat("thread (%u, %u, %u) at %s:%u", t.index.x, t.index.y,
                         t.index.z, t.where.file_name(), t.where.line());
}

void BlockRunner::Fail(const std::string& what) const {
  std::fprintf(stderr, "simt: kernel %s, block (%u, %u, %u), order %s: %s\n",
               std::string(shape_->kernel).c_str(), blockIdx.x, blockIdx.y,
               blockIdx.z, NameOf(order_).c_str(), what.c_str());
  std::abort();
}

void BlockRunner::FailDisagreement(unsigned a, unsigned b) const {
  const auto mask = [&](unsigned thread) {
    return absl::StrFormat(", mask %08x",
                           warps_[thread / kWarp].mask[thread % kWarp]);
  };
  Fail("lanes of a warp disagree about an operation: " + Describe(a) + mask(a) +
       "; " + Describe(b) + mask(b));
}

// All that are left wait for one another.
void BlockRunner::FailStuck() const {
  std::string what = "no thread can go on:";
  unsigned named = 0;
  for (unsigned t = 0; t < count_ && named < 8; ++t) {
    const Warp& warp = warps_[t / kWarp];
    if ((warp.live >> (t % kWarp) & 1) == 0) continue;
    const bool at_barrier = threads_[t].at_block_barrier;
    what += absl::StrFormat(
        "\n  %s waits at %s", Describe(t),
        at_barrier ? std::string("a barrier of the block")
                   : absl::StrFormat("an operation of the lanes %08x",
                                     warp.mask[t % kWarp]));
    ++named;
  }
  Fail(what);
}

}  // namespace

void RunGrid(const LaunchShape& shape, absl::FunctionRef<void()> thread) {
  Runner().RunGrid(shape, thread);
}

void* SharedMemory(const void* site, size_t bytes) {
  return Runner().Shared(site, bytes);
}

void* DynamicShared() { return Runner().DynamicShared(); }

void BlockBarrier(const std::source_location& where) {
  Runner().Barrier(where);
}

uint64_t WarpExchange(WarpOperation operation, uint32_t mask, uint64_t value,
                      int source, const std::source_location& where) {
  return Runner().Exchange(operation, mask, value, source, where);
}

int LaneIndex() { return static_cast<int>(Runner().lane()); }

}  // namespace coldstream::simt
