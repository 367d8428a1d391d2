// Keys and values of past tokens, in paged blocks.
//
// A block holds kKvBlockTokens positions of one sequence in every layer: tiles
// [kv_heads] of keys and again of values (kernels/kv_type.h). Sequences own
// lists of blocks; blocks go back to the pool when a sequence is released.
// Layers whose attention the CPU computes beside a device have theirs in host
// memory; the blocks have the same numbers in every layer. On the CPU memory is
// mapped at Create and becomes resident as positions are written.
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
  // Room for `tokens` positions, rounded up to whole blocks: of the first
  // `host_layers` layers in the memory of `host`, which may be null if that is
  // 0, of the rest in the device's. `config` and the devices must outlive the
  // cache. Errors: ResourceExhausted.
  static StatusOr<KvCache> Create(const ModelConfig& config, KvType type,
                                  int64_t tokens, Device* device,
                                  int64_t host_layers = 0,
                                  Device* host = nullptr);
  // Bytes Create takes for layers [begin, end), or for all.
  static uint64_t BytesFor(const ModelConfig& config, KvType type,
                           int64_t tokens, int64_t begin, int64_t end);
  static uint64_t BytesFor(const ModelConfig& config, KvType type,
                           int64_t tokens);

  // Gives the sequence blocks for positions up to `length`.
  // ResourceExhausted, with nothing taken, if the pool has too few.
  Status Reserve(KvSequence* sequence, int64_t length);
  void Release(KvSequence* sequence);

  // Where the layer's blocks lie.
  KvLayer Layer(int64_t layer) const;

  uint64_t bytes() const { return memory_.size() + host_memory_.size(); }
  int64_t block_count() const { return pool_.block_count(); }
  // Whose blocks they are.
  KvBlockPool& pool() { return pool_; }

 private:
  const ModelConfig* config_ = nullptr;
  KvType type_ = KvType::kF16;
  DeviceMemory memory_;
  DeviceMemory host_memory_;
  std::vector<std::byte*> layer_base_;
  std::vector<uint64_t> layer_block_;    // bytes of one block
  std::vector<uint64_t> values_offset_;  // bytes from a block's start
  KvBlockPool pool_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_KV_CACHE_H_
