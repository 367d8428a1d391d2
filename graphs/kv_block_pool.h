// Which blocks of a KV cache belong to whom, and which hold a prefix that
// another sequence can use.
//
// A block holds kKvBlockTokens positions of a sequence. Blocks are counted by
// their users; a full one that is Published can be found by the tokens in it
// and before it (Match), also after its last user has gone, until it is taken
// for something else. Those unused for longest go first, of a sequence the last
// ones first, so that common beginnings stay.
//
//   KvSequence s;
//   s.length = pool.Match(tokens, most, &s.blocks);   // computed already
//   RETURN_IF_ERROR(pool.Reserve(&s.blocks, n));      // n blocks in all
//   ... compute ...; pool.Publish(tokens, computed, s.blocks);
//   pool.Release(&s.blocks);
//
// Invariants: tokens are compared, not only their hashes; a shared block is
// full and never written again; every block is free or has users.
// Thread-safety: none; one thread at a time.
// Source of the idea: Kwon et al., "Efficient Memory Management for Large
// Language Model Serving with PagedAttention" (SOSP 2023), section 4.4.
#ifndef COLDSTREAM_GRAPHS_KV_BLOCK_POOL_H_
#define COLDSTREAM_GRAPHS_KV_BLOCK_POOL_H_

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"

namespace coldstream {

class KvBlockPool {
 public:
  KvBlockPool() = default;
  KvBlockPool(int64_t block_count, int64_t block_tokens);

  int64_t block_count() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t free_count() const { return static_cast<int64_t>(free_.size()); }
  int64_t BlocksFor(int64_t tokens) const {
    return (tokens + block_tokens_ - 1) / block_tokens_;
  }

  // Makes `blocks` at least `count` long. ResourceExhausted, with nothing
  // taken, if too few are free.
  Status Reserve(std::vector<int>* blocks, int64_t count);
  void Release(std::vector<int>* blocks);  // and clears it

  // The longest published beginning of `tokens`, at most `most` of them: its
  // blocks, now also of this caller, go to `blocks` (empty). Returns the tokens
  // in them, a multiple of a block's.
  int64_t Match(std::span<const int32_t> tokens, int64_t most,
                std::vector<int>* blocks);
  // The first `computed` of `tokens` are in `blocks`: full ones can be found
  // from now on. Where others hold the same tokens already, theirs stay.
  void Publish(std::span<const int32_t> tokens, int64_t computed,
               std::span<const int> blocks);

 private:
  // Of a published block: the block before it, by which life of it, its own
  // tokens.
  struct Key {
    int parent = -1;  // -1: the first of a sequence
    uint64_t parent_life = 0;
    std::vector<int32_t> tokens;
    bool operator<(const Key& other) const {
      return std::tie(parent, parent_life, tokens) <
             std::tie(other.parent, other.parent_life, other.tokens);
    }
  };
  struct Block {
    int64_t users = 0;
    uint64_t life = 0;      // how often it was taken for something new
    uint64_t freed_at = 0;  // by turn_, where it is free
    std::map<Key, int>::iterator published = {};
    bool is_published = false;
  };

  Block& At(int block) { return blocks_[static_cast<size_t>(block)]; }
  void Use(int block);  // one more user
  int TakeFree();
  Key KeyOf(int parent, std::span<const int32_t> tokens);

  int64_t block_tokens_ = 1;
  std::vector<Block> blocks_;
  std::set<std::pair<uint64_t, int>> free_;  // freed_at, block
  uint64_t turn_ = 0;
  std::map<Key, int> index_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_KV_BLOCK_POOL_H_
