#include "tests/support/faulty_backend.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/check.h"

namespace coldstream {

FaultTable FaultTable::Harmless(uint64_t seed) {
  FaultTable table;
  table.seed = seed;
  return table.With(Fault::kOk, 8)
      .With(Fault::kShort, 4)
      .With(Fault::kAgain, 2)
      .With(Fault::kLate, 3)
      .With(Fault::kReordered, 3);
}

FaultyBackend::FaultyBackend(std::unique_ptr<ReadBackend> inner,
                             const FaultTable& table)
    : inner_(std::move(inner)), table_(table), random_(table.seed) {}

Fault FaultyBackend::Draw() {
  uint64_t sum = 0;
  for (uint32_t weight : table_.weights) sum += weight;
  CHECK(sum > 0);
  uint64_t ticket = random_() % sum;
  for (size_t kind = 0; kind < kFaultKinds; ++kind) {
    if (ticket < table_.weights[kind]) return static_cast<Fault>(kind);
    ticket -= table_.weights[kind];
  }
  return Fault::kOk;
}

void FaultyBackend::Push(const RawRead& read) {
  if (table_.refuse_direct && !read.buffered) {
    ready_.push_back({read.tag, -EINVAL});
    return;
  }
  const Fault fault = Draw();
  switch (fault) {
    case Fault::kAgain:
      ready_.push_back({read.tag, random_() % 2 == 0 ? -EAGAIN : -EINTR});
      return;
    case Fault::kIoError:
      ready_.push_back({read.tag, -EIO});
      return;
    case Fault::kZero:
      ready_.push_back({read.tag, 0});
      return;
    default:
      CHECK(inside_.emplace(read.tag, Pending{read, fault}).second);
      inner_->Push(read);
  }
}

void FaultyBackend::Take(const RawResult& result) {
  const auto node = inside_.extract(result.tag);
  CHECK(!node.empty());
  const Pending& pending = node.mapped();
  for (Held& held : held_) --held.others_left;
  switch (pending.fault) {
    case Fault::kShort: {
      if (result.result <= 1) break;
      const uint64_t whole = static_cast<uint64_t>(result.result);
      const uint64_t kept = 1 + random_() % (whole - 1);
      std::memset(pending.read.destination + kept, 0xA5,
                  pending.read.length - kept);
      ready_.push_back({result.tag, static_cast<int32_t>(kept)});
      return;
    }
    case Fault::kLate:
      held_.push_back({result, table_.late_results});
      return;
    case Fault::kReordered:
      shuffle_ = true;
      break;
    default:
      break;
  }
  ready_.push_back(result);
}

Status FaultyBackend::Wait(std::vector<RawResult>* results) {
  if (ready_.empty() && !inside_.empty()) {
    std::vector<RawResult> inner_results;
    RETURN_IF_ERROR(inner_->Wait(&inner_results));
    for (const RawResult& result : inner_results) Take(result);
  } else if (ready_.empty() && held_.empty()) {
    return inner_->Wait(results);  // for a Wake
  }
  if (table_.delay.count() > 0) std::this_thread::sleep_for(table_.delay);
  for (const Held& held : held_) {
    if (held.others_left <= 0 || (inside_.empty() && ready_.empty())) {
      ready_.push_back(held.result);
    }
  }
  std::erase_if(held_, [&](const Held& held) {
    return std::any_of(ready_.begin(), ready_.end(), [&](const RawResult& r) {
      return r.tag == held.result.tag;
    });
  });
  if (std::exchange(shuffle_, false)) {
    std::shuffle(ready_.begin(), ready_.end(), random_);
  }
  results->insert(results->end(), ready_.begin(), ready_.end());
  ready_.clear();
  return absl::OkStatus();
}

}  // namespace coldstream
