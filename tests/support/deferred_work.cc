#include "tests/support/deferred_work.h"

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

bool FailsFrom(int64_t first, int64_t number) {
  return first != DeviceFaults::kNever && number >= first;
}

bool Overlap(std::span<const std::byte> a, const std::byte* b, size_t bytes) {
  return b < a.data() + a.size() && a.data() < b + bytes;
}

}  // namespace

DeferredWork::DeferredWork(uint64_t seed, const DeviceFaults& faults)
    : faults_(faults), random_(seed) {
  const std::lock_guard lock(mutex_);
  // Late orders find most of what is missing, so most seeds are late.
  constexpr std::array kEagerness = {
      Eagerness::kNone, Eagerness::kNone, Eagerness::kNone,  Eagerness::kNone,
      Eagerness::kNone, Eagerness::kSome, Eagerness::kMixed, Eagerness::kAll};
  eagerness_ = kEagerness[Draw(kEagerness.size())];
  waits_narrowly_ = Draw(4) != 0;
}

DeferredWork::~DeferredWork() {
  const std::lock_guard lock(mutex_);
  while (StepAny()) {
  }
}

size_t DeferredWork::AddStream() {
  const std::lock_guard lock(mutex_);
  constexpr std::array<uint64_t, 3> kWeights = {1, 10, 100};
  queues_.push_back({kWeights[Draw(kWeights.size())], {}});
  return queues_.size() - 1;
}

Status DeferredWork::Copy(size_t stream, std::byte* to, const std::byte* from,
                          size_t bytes) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(TakeError());
  Push(stream, {.kind = Operation::Kind::kCopy,
                .fails = FailsFrom(faults_.fail_copies_from, copies_++),
                .to = to,
                .from = from,
                .bytes = bytes});
  return absl::OkStatus();
}

void DeferredWork::Kernel(size_t stream, std::function<void()> kernel) {
  const std::lock_guard lock(mutex_);
  Push(stream, {.kind = Operation::Kind::kKernel,
                .fails = FailsFrom(faults_.fail_kernels_from, kernels_++),
                .kernel = std::move(kernel)});
}

StatusOr<std::shared_ptr<const WorkMark>> DeferredWork::Record(size_t stream) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(TakeError());
  auto mark = std::make_shared<WorkMark>();
  mark->stream = stream;
  Push(stream, {.kind = Operation::Kind::kRecord, .record = mark});
  return mark;
}

Status DeferredWork::WaitFor(size_t stream,
                             std::shared_ptr<const WorkMark> mark) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(TakeError());
  if (mark != nullptr)
    Push(stream, {.kind = Operation::Kind::kWait, .wait = std::move(mark)});
  return absl::OkStatus();
}

Status DeferredWork::Finish(size_t stream) {
  const std::lock_guard lock(mutex_);
  RunUntil(stream, [&] { return queues_[stream].operations.empty(); });
  return TakeError();
}

Status DeferredWork::Finish(const WorkMark* mark) {
  const std::lock_guard lock(mutex_);
  if (mark != nullptr) RunUntil(mark->stream, [&] { return mark->done; });
  return TakeError();
}

bool DeferredWork::Poll(const WorkMark* mark) {
  const std::lock_guard lock(mutex_);
  if (mark == nullptr) return true;
  const bool done = mark->done;
  StepAny();
  Wander();
  return done;
}

StatusOr<double> DeferredWork::SecondsBetween(const WorkMark* from,
                                              const WorkMark* to) {
  const std::lock_guard lock(mutex_);
  if (from == nullptr || to == nullptr)
    return absl::FailedPreconditionError("an event was never recorded");
  if (!from->done || !to->done)
    return absl::FailedPreconditionError("an event is not ready");
  return 1e-6 *
         (static_cast<double>(to->step) - static_cast<double>(from->step));
}

bool DeferredWork::NeedsMemory(std::span<const std::byte> memory) {
  const std::lock_guard lock(mutex_);
  for (const Queue& queue : queues_)
    for (const Operation& op : queue.operations)
      if (op.kind == Operation::Kind::kCopy &&
          (Overlap(memory, op.to, op.bytes) ||
           Overlap(memory, op.from, op.bytes)))
        return true;
  return false;
}

void DeferredWork::Push(size_t stream, Operation operation) {
  queues_[stream].operations.push_back(std::move(operation));
  Wander();
}

void DeferredWork::Wander() {
  Eagerness eagerness = eagerness_;
  if (eagerness == Eagerness::kMixed)
    eagerness = std::array{Eagerness::kNone, Eagerness::kSome,
                           Eagerness::kAll}[Draw(3)];
  switch (eagerness) {
    case Eagerness::kNone:
    case Eagerness::kMixed:
      return;
    case Eagerness::kSome:
      for (uint64_t steps = Draw(3); steps > 0 && StepAny(); --steps) {
      }
      return;
    case Eagerness::kAll:
      while (StepAny()) {
      }
      return;
  }
}

void DeferredWork::RunUntil(size_t stream, const std::function<bool()>& done) {
  while (!done()) {
    if (waits_narrowly_) {
      StepToward(stream);
    } else {
      StepAny();
    }
  }
}

bool DeferredWork::StepAny() {
  std::vector<size_t> ready;
  uint64_t total = 0;
  for (size_t stream = 0; stream < queues_.size(); ++stream) {
    if (!CanStep(stream)) continue;
    ready.push_back(stream);
    total += queues_[stream].weight;
  }
  if (ready.empty()) return false;
  uint64_t ticket = Draw(total);
  for (const size_t stream : ready) {
    if (ticket < queues_[stream].weight) {
      Step(stream);
      break;
    }
    ticket -= queues_[stream].weight;
  }
  return true;
}

void DeferredWork::StepToward(size_t stream) {
  // Each mark was made before the wait for it, so this comes to an end.
  while (!CanStep(stream)) {
    const auto& operations = queues_[stream].operations;
    if (operations.empty()) return;  // it held nothing but waits
    stream = operations.front().wait->stream;
  }
  Step(stream);
}

void DeferredWork::Step(size_t stream) {
  ++clock_;
  auto& operations = queues_[stream].operations;
  if (Work(&operations.front())) operations.pop_front();
}

bool DeferredWork::CanStep(size_t stream) {
  auto& operations = queues_[stream].operations;
  while (!operations.empty() &&
         operations.front().kind == Operation::Kind::kWait) {
    if (!operations.front().wait->done) return false;
    operations.pop_front();
  }
  return !operations.empty();
}

bool DeferredWork::Work(Operation* op) {
  switch (op->kind) {
    case Operation::Kind::kCopy:
      if (!op->poisoned) {
        std::memset(op->to, std::to_integer<int>(kPoison), op->bytes);
        op->poisoned = true;
        return false;
      }
      if (!op->fails) std::memcpy(op->to, op->from, op->bytes);
      break;
    case Operation::Kind::kKernel:
      if (!op->fails) op->kernel();
      break;
    case Operation::Kind::kRecord:
      op->record->done = true;
      op->record->step = clock_;
      break;
    case Operation::Kind::kWait:  // CanStep took it
      break;
  }
  if (op->fails && error_.ok())
    error_ = absl::InternalError(absl::StrFormat(
        "the deferred device failed a %s, as it was told to",
        op->kind == Operation::Kind::kCopy ? "copy" : "kernel"));
  return true;
}

uint64_t DeferredWork::Draw(uint64_t below) { return random_() % below; }

Status DeferredWork::TakeError() {
  return std::exchange(error_, absl::OkStatus());
}

}  // namespace coldstream
