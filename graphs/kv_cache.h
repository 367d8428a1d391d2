// Keys and values of past tokens, in paged blocks.
//
// A block holds kKvBlockTokens positions of one sequence in every layer, as f16
// [kv_heads, kKvBlockTokens, dim] for keys and again for values. Sequences own
// lists of blocks; blocks go back to the pool when a sequence is released.
// Memory is mapped at Create and becomes resident as positions are written.
#ifndef COLDSTREAM_GRAPHS_KV_CACHE_H_
#define COLDSTREAM_GRAPHS_KV_CACHE_H_

#include <cstdint>
#include <vector>

#include "base/host_memory.h"
#include "base/status.h"
#include "graphs/model_config.h"

namespace coldstream {

struct KvSequence {
  std::vector<int> blocks;  // by position / kKvBlockTokens
  int64_t length = 0;       // tokens whose keys and values are in
};

class KvCache {
 public:
  // Room for `tokens` positions, rounded up to whole blocks. `config` must
  // outlive the cache. Errors: ResourceExhausted.
  static StatusOr<KvCache> Create(const ModelConfig& config, int64_t tokens);
  // Bytes Create takes.
  static uint64_t BytesFor(const ModelConfig& config, int64_t tokens);

  // Gives the sequence blocks for positions up to `length`.
  // ResourceExhausted, with nothing taken, if the pool has too few.
  Status Reserve(KvSequence* sequence, int64_t length);
  void Release(KvSequence* sequence);

  uint16_t* Keys(int64_t layer, int block) const;
  uint16_t* Values(int64_t layer, int block) const;

  uint64_t bytes() const { return memory_.size(); }

 private:
  const ModelConfig* config_ = nullptr;
  HostMemory memory_;
  std::vector<uint64_t> layer_offset_;   // bytes
  std::vector<uint64_t> layer_block_;    // bytes of one block
  std::vector<uint64_t> values_offset_;  // bytes from a block's start
  std::vector<int> free_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_KV_CACHE_H_
