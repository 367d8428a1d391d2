// Tiles of keys or values (kernels/kv_type.h) and what they stand for, written
// out from the format's description.
#ifndef COLDSTREAM_TESTS_KERNELS_KV_TILES_H_
#define COLDSTREAM_TESTS_KERNELS_KV_TILES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "kernels/kv_type.h"

namespace coldstream {

inline constexpr uint16_t kNanHalf = 0x7e00;

// Value `at` of a tile's row as f16.
inline uint16_t KvHalf(KvType type, const std::byte* tile, int64_t dim,
                       int64_t row, int64_t at) {
  uint16_t half = 0;
  if (type == KvType::kF16) {
    std::memcpy(&half, tile + (row * dim + at) * 2, sizeof half);
    return half;
  }
  const int64_t groups = (dim + 31) / 32;
  std::memcpy(&half, tile + 64 * dim + (row * groups + at / 32) * 2,
              sizeof half);
  const auto q = static_cast<int8_t>(tile[row * dim + at]);
  return F32ToF16(F16ToF32(half) * static_cast<float>(q));
}

// The tile of f16 that one of q8_0 stands for.
inline std::vector<uint16_t> HalvesOfQ8Tile(const std::byte* tile,
                                            int64_t dim) {
  std::vector<uint16_t> halves;
  for (int64_t row = 0; row < kKvBlockTokens; ++row)
    for (int64_t at = 0; at < dim; ++at)
      halves.push_back(KvHalf(KvType::kQ8_0, tile, dim, row, at));
  return halves;
}

// Of any numbers and scales about 1 / 64; NaN from row `count` on.
inline std::vector<std::byte> RandomQ8Tile(int64_t dim, int64_t count,
                                           std::mt19937* random) {
  std::vector<std::byte> tile(
      static_cast<size_t>(KvTileBytes(KvType::kQ8_0, dim)));
  std::uniform_int_distribution<int> number(-127, 127);
  std::uniform_real_distribution<float> scale(0x1p-7f, 0x1p-5f);
  for (int64_t i = 0; i < kKvBlockTokens * dim; ++i)
    tile[static_cast<size_t>(i)] = static_cast<std::byte>(number(*random));
  const int64_t groups = KvScales(dim);
  for (int64_t i = 0; i < kKvBlockTokens * groups; ++i) {
    const uint16_t half =
        i < count * groups ? F32ToF16(scale(*random)) : kNanHalf;
    std::memcpy(tile.data() + kKvBlockTokens * dim + i * 2, &half, sizeof half);
  }
  return tile;
}

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_KERNELS_KV_TILES_H_
