#include "graphs/kv_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "base/device.h"
#include "kernels/ops.h"
#include "tests/support/deferred_device.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

// Layers of different shapes: keys and values of unequal width too.
ModelConfig Config() {
  ModelConfig config;
  config.layers = {{4, 2, 16, 16, 1}, {4, 4, 24, 8, 1}, {2, 1, 8, 40, 1}};
  return config;
}

uint64_t BlockBytes() {
  return 2u * kKvBlockTokens * (2 * (16 + 16) + 4 * (24 + 8) + 1 * (8 + 40));
}

TEST(KvCacheTest, BytesAreExactForUnequalLayers) {
  EXPECT_EQ(KvCache::BytesFor(Config(), KvType::kF16, 1), BlockBytes());
  EXPECT_EQ(KvCache::BytesFor(Config(), KvType::kF16, 64), BlockBytes());
  EXPECT_EQ(KvCache::BytesFor(Config(), KvType::kF16, 65), 2 * BlockBytes());
}

TEST(KvCacheTest, Q8TakesAByteAValueAndAHalfForThirtyTwo) {
  ModelConfig config;
  config.layers = {{4, 2, 128, 80, 1}};
  EXPECT_EQ(KvCache::BytesFor(config, KvType::kQ8_0, 64),
            2u * 64 * (128 + 4 * 2 + 80 + 3 * 2));
}

TEST(KvCacheTest, BlocksOfOneSequenceAndLayerDoNotOverlap) {
  const ModelConfig config = Config();
  const std::unique_ptr<Device> device = CreateCpuDevice();
  auto cache = KvCache::Create(config, KvType::kF16, 256, device.get());
  ASSERT_THAT(cache.status(), IsOk());
  // Fill every block of every layer with its own value, then look again.
  const auto fill = [&](bool check) {
    uint16_t value = 1;
    for (int64_t layer = 0; layer < 3; ++layer) {
      const LayerShape& shape = config.layers[static_cast<size_t>(layer)];
      for (int block = 0; block < 4; ++block) {
        for (bool keys : {true, false}) {
          const KvLayer place = cache->Layer(layer);
          auto* data = reinterpret_cast<uint16_t*>(keys ? place.keys(block)
                                                        : place.values(block));
          const int64_t count = shape.kv_heads * kKvBlockTokens *
                                (keys ? shape.key_dim : shape.value_dim);
          for (int64_t i = 0; i < count; ++i) {
            if (check) {
              ASSERT_EQ(data[i], value);
            } else {
              data[i] = value;
            }
          }
          ++value;
        }
      }
    }
  };
  fill(false);
  fill(true);
}

TEST(KvCacheTest, LayersOfTheHostLieInItsMemory) {
  const ModelConfig config = Config();
  for (int64_t host_layers = 0; host_layers <= 3; ++host_layers) {
    const std::unique_ptr<Device> device =
        CreateDeferredDevice({.memory_bytes = 1 << 20});
    const std::unique_ptr<Device> host = CreateCpuDevice();
    auto cache = KvCache::Create(config, KvType::kQ8_0, 256, device.get(),
                                 host_layers, host.get());
    ASSERT_THAT(cache.status(), IsOk());
    const uint64_t on_host =
        KvCache::BytesFor(config, KvType::kQ8_0, 256, 0, host_layers);
    const uint64_t on_device =
        KvCache::BytesFor(config, KvType::kQ8_0, 256, host_layers, 3);
    EXPECT_EQ(cache->bytes(), on_host + on_device);
    EXPECT_EQ(on_host + on_device,
              KvCache::BytesFor(config, KvType::kQ8_0, 256));
    const auto info = device->MemoryInfo();
    EXPECT_EQ(info->total - info->free, on_device);
    const std::byte* next = nullptr;
    for (int64_t layer = 0; layer < 3; ++layer) {
      const KvLayer place = cache->Layer(layer);
      // One after another, but for the step to the device.
      if (next != nullptr && layer != host_layers) {
        EXPECT_EQ(place.base, next) << layer;
      }
      next = place.base + 4 * place.block_bytes;
    }
  }
}

TEST(KvCacheTest, SequencesGetBlocksOfTheirOwnAndGiveThemBack) {
  const ModelConfig config = Config();
  const std::unique_ptr<Device> device = CreateCpuDevice();
  auto cache = KvCache::Create(config, KvType::kF16, 256, device.get());
  ASSERT_THAT(cache.status(), IsOk());
  KvSequence a, b;
  ASSERT_THAT(cache->Reserve(&a, 100), IsOk());
  ASSERT_THAT(cache->Reserve(&b, 64), IsOk());
  ASSERT_THAT(cache->Reserve(&a, 129), IsOk());
  std::set<int> blocks(a.blocks.begin(), a.blocks.end());
  blocks.insert(b.blocks.begin(), b.blocks.end());
  EXPECT_EQ(blocks.size(), 4u);
  EXPECT_THAT(cache->Reserve(&b, 65),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       ::testing::HasSubstr("KV cache is full")));
  EXPECT_EQ(b.blocks.size(), 1u);
  cache->Release(&a);
  EXPECT_THAT(cache->Reserve(&b, 256), IsOk());
}

}  // namespace
}  // namespace coldstream
