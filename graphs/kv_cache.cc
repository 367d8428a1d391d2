#include "graphs/kv_cache.h"

#include "absl/strings/str_format.h"
#include "kernels/ops.h"

namespace coldstream {
namespace {

uint64_t BlocksFor(int64_t tokens) {
  return static_cast<uint64_t>((tokens + kKvBlockTokens - 1) / kKvBlockTokens);
}

uint64_t HalfBytes(int64_t kv_heads, int64_t dim) {
  return static_cast<uint64_t>(kv_heads * kKvBlockTokens * dim) *
         sizeof(uint16_t);
}

uint64_t BlockBytes(const LayerShape& layer) {
  return HalfBytes(layer.kv_heads, layer.key_dim) +
         HalfBytes(layer.kv_heads, layer.value_dim);
}

}  // namespace

uint64_t KvCache::BytesFor(const ModelConfig& config, int64_t tokens) {
  uint64_t bytes = 0;
  for (const LayerShape& layer : config.layers)
    bytes += BlockBytes(layer) * BlocksFor(tokens);
  return bytes;
}

StatusOr<KvCache> KvCache::Create(const ModelConfig& config, int64_t tokens,
                                  Device* device) {
  KvCache cache;
  cache.config_ = &config;
  const uint64_t blocks = BlocksFor(tokens);
  cache.block_count_ = static_cast<int64_t>(blocks);
  uint64_t offset = 0;
  for (const LayerShape& layer : config.layers) {
    cache.layer_offset_.push_back(offset);
    cache.layer_block_.push_back(BlockBytes(layer));
    cache.values_offset_.push_back(HalfBytes(layer.kv_heads, layer.key_dim));
    offset += BlockBytes(layer) * blocks;
  }
  ASSIGN_OR_RETURN(cache.memory_, device->Allocate(offset, "the KV cache"));
  // Handed out from the back: the lowest block first.
  for (uint64_t block = blocks; block > 0; --block)
    cache.free_.push_back(static_cast<int>(block - 1));
  return cache;
}

Status KvCache::Reserve(KvSequence* sequence, int64_t length) {
  const uint64_t wanted = BlocksFor(length);
  const uint64_t have = sequence->blocks.size();
  if (wanted <= have) return absl::OkStatus();
  if (wanted - have > free_.size()) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the KV cache is full: %d more tokens wanted, room for %d",
        length - sequence->length,
        static_cast<int64_t>(have + free_.size()) * kKvBlockTokens -
            sequence->length));
  }
  for (uint64_t i = have; i < wanted; ++i) {
    sequence->blocks.push_back(free_.back());
    free_.pop_back();
  }
  return absl::OkStatus();
}

void KvCache::Release(KvSequence* sequence) {
  for (size_t i = sequence->blocks.size(); i > 0; --i)
    free_.push_back(sequence->blocks[i - 1]);
  sequence->blocks.clear();
  sequence->length = 0;
}

KvLayer KvCache::Layer(int64_t layer) const {
  const auto index = static_cast<size_t>(layer);
  const LayerShape& shape = config_->layers[index];
  return {.base = memory_.data() + layer_offset_[index],
          .block_bytes = layer_block_[index],
          .values_offset = values_offset_[index],
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .key_dim = shape.key_dim,
          .value_dim = shape.value_dim};
}

}  // namespace coldstream
