#include "kernels/cuda/kv_store.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "base/half.h"
#include "gtest/gtest.h"
#include "kernels/kv_rows.h"
#include "kernels/ops.h"
#include "tests/kernels/cuda/random_floats.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

// Two sequences over five blocks that lie in no order, with room between keys
// and values and after them.
struct Cache {
  static constexpr int64_t kKvHeads = 3, kKeyDim = 20, kValueDim = 12;
  static constexpr uint64_t kValuesOffset = kKvHeads * 64 * kKeyDim * 2 + 64;
  static constexpr uint64_t kBlockBytes =
      kValuesOffset + kKvHeads * 64 * kValueDim * 2 + 32;

  std::vector<int32_t> block_begin = {0, 3, 5};
  std::vector<int32_t> blocks = {4, 0, 2, 3, 1};
  std::vector<int64_t> positions = {63, 64, 130, 0, 100};
  std::vector<int32_t> sequence = {0, 0, 0, 1, 1};

  cuda::DeviceTokens tokens() const {
    return {static_cast<int64_t>(positions.size()), positions.data(),
            sequence.data(), block_begin.data(), blocks.data()};
  }
  // Where the block of token t's position begins.
  uint64_t BlockOffset(int64_t t) const {
    const auto token = static_cast<size_t>(t);
    const auto first = block_begin[static_cast<size_t>(sequence[token])];
    const auto at = static_cast<size_t>(first + positions[token] / 64);
    return static_cast<uint64_t>(blocks[at]) * kBlockBytes;
  }
  static KvLayer LayerAt(std::byte* base) {
    return {base, kBlockBytes, kValuesOffset, 6, kKvHeads, kKeyDim, kValueDim};
  }
};

TEST(CudaKvStoreTest, EveryValueGoesToItsPlaceRoundedAndNothingElseChanges) {
  const Cache cache;
  const auto count = cache.tokens().count;
  auto k = RandomFloats(count * Cache::kKvHeads * Cache::kKeyDim, 100, 1);
  const auto v = RandomFloats(count * Cache::kKvHeads * Cache::kValueDim, 1, 2);
  k[5] = 1e6f;  // infinity as f16
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    std::vector<std::byte> memory(5 * Cache::kBlockBytes, std::byte{0x5a});
    std::vector<std::byte> expected = memory;
    const auto put = [&](uint64_t offset, float value) {
      const uint16_t half = F32ToF16(value);
      std::memcpy(expected.data() + offset, &half, sizeof half);
    };
    for (int64_t t = 0; t < count; ++t) {
      const int64_t position = cache.positions[static_cast<size_t>(t)];
      const uint64_t base = cache.BlockOffset(t);
      for (int64_t h = 0; h < Cache::kKvHeads; ++h) {
        const int64_t row = h * 64 + position % 64;
        const int64_t head = t * Cache::kKvHeads + h;
        for (int64_t i = 0; i < Cache::kKeyDim; ++i)
          put(base + static_cast<uint64_t>(row * Cache::kKeyDim + i) * 2,
              k[static_cast<size_t>(head * Cache::kKeyDim + i)]);
        for (int64_t i = 0; i < Cache::kValueDim; ++i)
          put(base + Cache::kValuesOffset +
                  static_cast<uint64_t>(row * Cache::kValueDim + i) * 2,
              v[static_cast<size_t>(head * Cache::kValueDim + i)]);
      }
    }
    simt::ImmediateStream stream;
    ASSERT_THAT(cuda::StoreKv(k.data(), v.data(), cache.tokens(),
                              Cache::LayerAt(memory.data()), &stream),
                IsOk());
    ASSERT_EQ(memory, expected) << NameOf(order);
  }
}

TEST(CudaKvStoreTest, QuantisedRowsAreTheBytesOfTheCpus) {
  const Cache cache;
  constexpr int64_t kKeys = Cache::kKvHeads * Cache::kKeyDim;
  constexpr int64_t kValues = Cache::kKvHeads * Cache::kValueDim;
  const auto count = cache.tokens().count;
  auto k = RandomFloats(count * kKeys, 100, 1);
  auto v = RandomFloats(count * kValues, 1, 2);
  k[5] = std::numeric_limits<float>::quiet_NaN();
  k[6] = 1e9f;  // a scale that is no f16
  std::fill_n(v.begin(), Cache::kValueDim, 0.0f);
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    std::vector<std::byte> memory(5 * Cache::kBlockBytes, std::byte{0x5a});
    std::vector<std::byte> expected = memory;
    KvLayer layer = Cache::LayerAt(memory.data());
    layer.type = KvType::kQ8_0;
    for (int64_t t = 0; t < count; ++t) {
      const int64_t position = cache.positions[static_cast<size_t>(t)];
      std::byte* const to = expected.data() + cache.BlockOffset(t);
      const Ops& ops = **OpsFor(Isa::kScalar);
      StoreKvRow(ops, layer.type, k.data() + t * kKeys, Cache::kKvHeads,
                 Cache::kKeyDim, position % 64, to);
      StoreKvRow(ops, layer.type, v.data() + t * kValues, Cache::kKvHeads,
                 Cache::kValueDim, position % 64, to + Cache::kValuesOffset);
    }
    simt::ImmediateStream stream;
    ASSERT_THAT(
        cuda::StoreKv(k.data(), v.data(), cache.tokens(), layer, &stream),
        IsOk());
    ASSERT_EQ(memory, expected) << NameOf(order);
  }
}

TEST(CudaKvStoreTest, BlocksPastFourGibibytesAreReached) {
  constexpr uint64_t kFar = uint64_t{3} << 30;
  const SparseMemory memory(2 * kFar + Cache::kBlockBytes);
  Cache cache;
  cache.positions = {0};
  cache.sequence = {0};
  cache.blocks[0] = 2;
  KvLayer layer = Cache::LayerAt(memory.data());
  layer.block_bytes = kFar;
  const auto k = RandomFloats(Cache::kKvHeads * Cache::kKeyDim, 1, 1);
  const auto v = RandomFloats(Cache::kKvHeads * Cache::kValueDim, 1, 2);
  simt::ImmediateStream stream;
  ASSERT_THAT(cuda::StoreKv(k.data(), v.data(), cache.tokens(), layer, &stream),
              IsOk());
  const auto* block =
      reinterpret_cast<const uint16_t*>(memory.data() + 2 * kFar);
  EXPECT_EQ(block[1], F32ToF16(k[1]));
  EXPECT_EQ(block[Cache::kValuesOffset / 2 + 1], F32ToF16(v[1]));
}

}  // namespace
}  // namespace coldstream
