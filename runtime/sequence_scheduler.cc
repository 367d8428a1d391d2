#include "runtime/sequence_scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/ops.h"

namespace coldstream {

SequenceScheduler::SequenceScheduler(KvBlockPool* pool, const Limits& limits)
    : pool_(pool), limits_(limits) {
  CHECK(limits.tokens >= 1 && limits.logit_rows >= 1 && limits.sequences >= 1);
}

void SequenceScheduler::Add(SequenceState* sequence) {
  CHECK(sequence->left() > 0);
  waiting_.push_back(sequence);
}

void SequenceScheduler::Remove(SequenceState* sequence) {
  pool_->Release(&sequence->kv.blocks);
  sequence->kv.length = 0;
  std::erase(running_, sequence);
  std::erase(waiting_, sequence);
  std::erase_if(slices_, [&](const SequenceSlice& slice) {
    return slice.sequence == sequence;
  });
}

int64_t SequenceScheduler::tokens_wanted() const {
  int64_t tokens = 0;
  for (const SequenceState* sequence : running_) tokens += sequence->left();
  int64_t places = limits_.sequences - running();
  for (const SequenceState* sequence : waiting_) {
    if (--places < 0) break;
    tokens += sequence->left();
  }
  return std::min(tokens, limits_.tokens);
}

std::span<const SequenceSlice> SequenceScheduler::Compose() {
  const size_t waiting = waiting_.size();
  do {
    slices_.clear();
    tokens_left_ = limits_.tokens;
    rows_left_ = limits_.logit_rows;
    GrantRunning();
    ReserveOrPutBack();
    // Again where the whole budget was granted to those who had to make room.
  } while (slices_.empty() && !running_.empty());
  // Who has just made room is not let in again at once.
  if (waiting_.size() == waiting) Admit();
  CHECK(!slices_.empty() || empty());
  return slices_;
}

void SequenceScheduler::Finish() {
  for (const SequenceSlice& slice : slices_) {
    SequenceState& sequence = *slice.sequence;
    sequence.kv.length += slice.count;
    sequence.rows_from = std::max(sequence.rows_from, sequence.kv.length);
    pool_->Publish(sequence.tokens, sequence.kv.length, sequence.kv.blocks);
  }
  slices_.clear();
}

// One token each first, so that no prompt holds up what is being generated.
void SequenceScheduler::GrantRunning() {
  for (const bool generating : {true, false}) {
    for (SequenceState* sequence : running_) {
      if ((sequence->left() == 1) != generating) continue;
      const SequenceSlice slice = Grant(sequence);
      if (slice.count > 0) slices_.push_back(slice);
    }
  }
}

SequenceSlice SequenceScheduler::Grant(SequenceState* sequence) {
  SequenceSlice slice{sequence, sequence->kv.length, 0, 0};
  slice.count = std::min(sequence->left(), tokens_left_);
  const bool logits = sequence->row_kind == RowKind::kLogits;
  // Of the rows that it would want there may not be enough.
  const int64_t silent =
      std::max<int64_t>(sequence->rows_from - slice.begin, 0);
  slice.rows = std::clamp<int64_t>(slice.count - silent, 0,
                                   logits ? rows_left_ : slice.count);
  slice.count = std::min(slice.count, silent + slice.rows);
  tokens_left_ -= slice.count;
  if (logits) rows_left_ -= slice.rows;
  return slice;
}

// Oldest first, so that it is the youngest who make room.
void SequenceScheduler::ReserveOrPutBack() {
  for (size_t i = 0; i < running_.size(); ++i) {
    SequenceState* const sequence = running_[i];
    const auto slice = std::find_if(
        slices_.begin(), slices_.end(),
        [&](const SequenceSlice& each) { return each.sequence == sequence; });
    if (slice == slices_.end()) continue;
    const int64_t blocks = pool_->BlocksFor(slice->begin + slice->count);
    while (!pool_->Reserve(&sequence->kv.blocks, blocks).ok()) {
      const bool itself = running_.back() == sequence;
      CHECK(!itself || running_.size() > 1);  // alone it fits
      PutBackYoungest();
      if (itself) return;
    }
  }
}

void SequenceScheduler::PutBackYoungest() {
  SequenceState* const youngest = running_.back();
  running_.pop_back();
  const auto slice = std::find_if(
      slices_.begin(), slices_.end(),
      [&](const SequenceSlice& each) { return each.sequence == youngest; });
  if (slice != slices_.end()) {
    tokens_left_ += slice->count;
    if (youngest->row_kind == RowKind::kLogits) rows_left_ += slice->rows;
    slices_.erase(slice);
  }
  pool_->Release(&youngest->kv.blocks);
  youngest->kv.length = 0;
  ++youngest->put_back;
  waiting_.push_front(youngest);
}

void SequenceScheduler::Admit() {
  for (size_t i = 0; i < waiting_.size();) {
    if (running() >= limits_.sequences || tokens_left_ == 0) return;
    SequenceState* const sequence = waiting_[i];
    std::vector<int>& blocks = sequence->kv.blocks;
    // Rows that are wanted are not among what others have computed.
    const int64_t most =
        std::min(std::ssize(sequence->tokens) - 1, sequence->rows_from);
    const int64_t matched = pool_->Match(sequence->tokens, most, &blocks);
    if (LeaderIsComputing(*sequence, matched)) {
      pool_->Release(&blocks);
      ++i;  // those behind it may have nothing to wait for
      continue;
    }
    sequence->kv.length = matched;
    if (!AdmitOne(sequence)) {
      pool_->Release(&blocks);
      sequence->kv.length = 0;
      return;  // first come, first served
    }
    sequence->reused_tokens += matched;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// With blocks for all of its tokens and the first that is generated.
bool SequenceScheduler::AdmitOne(SequenceState* sequence) {
  const int64_t blocks = pool_->BlocksFor(std::ssize(sequence->tokens) + 1);
  const int64_t more = blocks - std::ssize(sequence->kv.blocks);
  const bool alone = running_.empty();
  if (more > pool_->free_count() && !alone) return false;
  const SequenceSlice slice = Grant(sequence);
  if (slice.count == 0) return false;
  CHECK(pool_
            ->Reserve(&sequence->kv.blocks,
                      pool_->BlocksFor(slice.begin + slice.count))
            .ok());
  slices_.push_back(slice);
  running_.push_back(sequence);
  return true;
}

// Another sequence has more of the same beginning than can be found, and is
// still at it.
bool SequenceScheduler::LeaderIsComputing(const SequenceState& sequence,
                                          int64_t matched) const {
  const int64_t block = kKvBlockTokens;
  const auto most = static_cast<std::ptrdiff_t>(
      std::min(std::ssize(sequence.tokens) - 1, sequence.rows_from));
  for (const SequenceState* leader : running_) {
    if (leader->left() <= 1) continue;
    const auto end = sequence.tokens.begin() + most;
    const auto same =
        std::mismatch(sequence.tokens.begin(), end, leader->tokens.begin(),
                      leader->tokens.end())
            .first -
        sequence.tokens.begin();
    const int64_t shared = same / block * block;
    if (shared > matched && leader->kv.length < shared) return true;
  }
  return false;
}

}  // namespace coldstream
