// Keys and values of past tokens, in paged blocks.
//
// A block holds kKvBlockTokens positions of one sequence in every layer, as f16
// [kv_heads, kKvBlockTokens, dim] for keys and again for values. Sequences own
// lists of blocks; blocks go back to the pool when a sequence is released.
// On the CPU memory is mapped at Create and becomes resident as positions are
// written.
#ifndef COLDSTREAM_GRAPHS_KV_CACHE_H_
#define COLDSTREAM_GRAPHS_KV_CACHE_H_

#include <cstdint>
#include <vector>

#include "base/device.h"
#include "base/status.h"
#include "graphs/kv_block_pool.h"
#include "graphs/model_config.h"
#include "kernels/pass_ops.h"

namespace coldstream {

struct KvSequence {
  std::vector<int> blocks;  // by position / kKvBlockTokens
  int64_t length = 0;       // tokens whose keys and values are in
};

class KvCache {
 public:
  // Room for `tokens` positions, rounded up to whole blocks, in the device's
  // memory. `config` and the device must outlive the cache. Errors:
  // ResourceExhausted.
  static StatusOr<KvCache> Create(const ModelConfig& config, int64_t tokens,
                                  Device* device);
  // Bytes Create takes.
  static uint64_t BytesFor(const ModelConfig& config, int64_t tokens);

  // Gives the sequence blocks for positions up to `length`.
  // ResourceExhausted, with nothing taken, if the pool has too few.
  Status Reserve(KvSequence* sequence, int64_t length);
  void Release(KvSequence* sequence);

  // Where the layer's blocks lie.
  KvLayer Layer(int64_t layer) const;

  uint64_t bytes() const { return memory_.size(); }
  int64_t block_count() const { return pool_.block_count(); }
  // Whose blocks they are.
  KvBlockPool& pool() { return pool_; }

 private:
  const ModelConfig* config_ = nullptr;
  DeviceMemory memory_;
  std::vector<uint64_t> layer_offset_;   // bytes
  std::vector<uint64_t> layer_block_;    // bytes of one block
  std::vector<uint64_t> values_offset_;  // bytes from a block's start
  KvBlockPool pool_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_KV_CACHE_H_
