#include "graphs/kv_cache.h"

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "kernels/ops.h"

namespace coldstream {
namespace {

uint64_t BlocksFor(int64_t tokens) {
  return static_cast<uint64_t>((tokens + kKvBlockTokens - 1) / kKvBlockTokens);
}

// Of the keys, or the values, of a block.
uint64_t TileBytes(KvType type, int64_t kv_heads, int64_t dim) {
  return static_cast<uint64_t>(kv_heads * KvTileBytes(type, dim));
}

uint64_t BlockBytes(KvType type, const LayerShape& layer) {
  return TileBytes(type, layer.kv_heads, layer.key_dim) +
         TileBytes(type, layer.kv_heads, layer.value_dim);
}

}  // namespace

uint64_t KvCache::BytesFor(const ModelConfig& config, KvType type,
                           int64_t tokens, int64_t begin, int64_t end) {
  uint64_t bytes = 0;
  for (int64_t layer = begin; layer < end; ++layer)
    bytes += BlockBytes(type, config.layers[static_cast<size_t>(layer)]) *
             BlocksFor(tokens);
  return bytes;
}

uint64_t KvCache::BytesFor(const ModelConfig& config, KvType type,
                           int64_t tokens) {
  return BytesFor(config, type, tokens, 0, config.layer_count());
}

StatusOr<KvCache> KvCache::Create(const ModelConfig& config, KvType type,
                                  int64_t tokens, Device* device,
                                  int64_t host_layers, Device* host) {
  CHECK(host_layers == 0 || host != nullptr);
  KvCache cache;
  cache.config_ = &config;
  cache.type_ = type;
  ASSIGN_OR_RETURN(cache.memory_,
                   device->Allocate(BytesFor(config, type, tokens, host_layers,
                                             config.layer_count()),
                                    "the KV cache"));
  if (host_layers > 0) {
    ASSIGN_OR_RETURN(
        cache.host_memory_,
        host->Allocate(BytesFor(config, type, tokens, 0, host_layers),
                       "the KV cache in host memory"));
  }
  const uint64_t blocks = BlocksFor(tokens);
  cache.pool_ = KvBlockPool(static_cast<int64_t>(blocks), kKvBlockTokens);
  std::byte* base = cache.host_memory_.data();
  for (int64_t i = 0; i < config.layer_count(); ++i) {
    if (i == host_layers) base = cache.memory_.data();
    const LayerShape& layer = config.layers[static_cast<size_t>(i)];
    cache.layer_base_.push_back(base);
    cache.layer_block_.push_back(BlockBytes(type, layer));
    cache.values_offset_.push_back(
        TileBytes(type, layer.kv_heads, layer.key_dim));
    base += BlockBytes(type, layer) * blocks;
  }
  return cache;
}

Status KvCache::Reserve(KvSequence* sequence, int64_t length) {
  const int64_t have = std::ssize(sequence->blocks);
  if (pool_.Reserve(&sequence->blocks, pool_.BlocksFor(length)).ok())
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the KV cache is full: %d more tokens wanted, room for %d",
      length - sequence->length,
      (have + pool_.free_count()) * kKvBlockTokens - sequence->length));
}

void KvCache::Release(KvSequence* sequence) {
  pool_.Release(&sequence->blocks);
  sequence->length = 0;
}

KvLayer KvCache::Layer(int64_t layer) const {
  const auto index = static_cast<size_t>(layer);
  const LayerShape& shape = config_->layers[index];
  return {.base = layer_base_[index],
          .block_bytes = layer_block_[index],
          .values_offset = values_offset_[index],
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .key_dim = shape.key_dim,
          .value_dim = shape.value_dim,
          .type = type_};
}

}  // namespace coldstream
