#include "graphs/kv_block_pool.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace coldstream {

KvBlockPool::KvBlockPool(int64_t block_count, int64_t block_tokens)
    : block_tokens_(block_tokens), blocks_(static_cast<size_t>(block_count)) {
  CHECK(block_tokens >= 1);
  for (int block = 0; block < block_count; ++block) {
    At(block).freed_at = turn_;
    free_.emplace(turn_++, block);
  }
}

Status KvBlockPool::Reserve(std::vector<int>* blocks, int64_t count) {
  const int64_t more = count - static_cast<int64_t>(blocks->size());
  if (more <= 0) return absl::OkStatus();
  if (more > free_count()) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the KV cache is full: %d more tokens wanted, room for %d",
        more * block_tokens_, free_count() * block_tokens_));
  }
  for (int64_t i = 0; i < more; ++i) blocks->push_back(TakeFree());
  return absl::OkStatus();
}

void KvBlockPool::Release(std::vector<int>* blocks) {
  for (size_t i = blocks->size(); i > 0; --i) {
    const int index = (*blocks)[i - 1];
    Block& block = At(index);
    CHECK(block.users > 0);
    if (--block.users > 0) continue;
    block.freed_at = turn_++;
    free_.emplace(block.freed_at, index);
  }
  blocks->clear();
}

int64_t KvBlockPool::Match(std::span<const int32_t> tokens, int64_t most,
                           std::vector<int>* blocks) {
  CHECK(blocks->empty());
  const auto step = static_cast<size_t>(block_tokens_);
  const auto end =
      static_cast<size_t>(std::min<int64_t>(most, std::ssize(tokens)));
  int parent = -1;
  for (size_t at = 0; at + step <= end; at += step) {
    const auto found = index_.find(KeyOf(parent, tokens.subspan(at, step)));
    if (found == index_.end()) break;
    parent = found->second;
    Use(parent);
    blocks->push_back(parent);
  }
  return std::ssize(*blocks) * block_tokens_;
}

void KvBlockPool::Publish(std::span<const int32_t> tokens, int64_t computed,
                          std::span<const int> blocks) {
  const auto step = static_cast<size_t>(block_tokens_);
  const auto full = static_cast<size_t>(computed / block_tokens_);
  CHECK(full <= blocks.size() && full * step <= tokens.size());
  for (size_t i = 0; i < full; ++i) {
    Block& block = At(blocks[i]);
    if (block.is_published) continue;
    const int parent = i == 0 ? -1 : blocks[i - 1];
    // After a block that could not be found nothing could be.
    if (parent >= 0 && !At(parent).is_published) return;
    const auto [place, added] = index_.emplace(
        KeyOf(parent, tokens.subspan(i * step, step)), blocks[i]);
    if (!added) return;
    block.published = place;
    block.is_published = true;
  }
}

void KvBlockPool::Use(int index) {
  Block& block = At(index);
  if (block.users++ == 0) free_.erase({block.freed_at, index});
}

int KvBlockPool::TakeFree() {
  const int index = free_.begin()->second;
  Block& block = At(index);
  Use(index);
  ++block.life;  // blocks published behind it can no longer be found
  if (block.is_published) index_.erase(block.published);
  block.is_published = false;
  return index;
}

KvBlockPool::Key KvBlockPool::KeyOf(int parent,
                                    std::span<const int32_t> tokens) {
  return {
      parent, parent < 0 ? 0 : At(parent).life, {tokens.begin(), tokens.end()}};
}

}  // namespace coldstream
