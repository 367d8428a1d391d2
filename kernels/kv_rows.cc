#include "kernels/kv_rows.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "kernels/activations.h"

namespace coldstream {
namespace {

// Quantised by the ops table, whose rows are whole blocks of 32.
void StoreQ8Row(const Ops& ops, const float* x, int64_t dim, int64_t slot,
                std::byte* tile) {
  const int64_t scales = KvScales(dim);
  const int64_t padded = scales * kKvScaleValues;
  alignas(64) float whole[kMostQ8KvDim];
  alignas(64) std::byte row[2 * kMostQ8KvDim];
  if (padded != dim) {
    std::copy_n(x, dim, whole);
    std::fill(whole + dim, whole + padded, 0.0f);
    x = whole;
  }
  ops.quantize[static_cast<size_t>(ActivationFormat::kQ8_32)](x, padded, row);
  const Q8_32Row quantized = ViewQ8_32(row, padded);
  std::memcpy(tile + slot * dim, quantized.q, static_cast<size_t>(dim));
  ops.to_f16(
      quantized.scale, scales,
      reinterpret_cast<uint16_t*>(tile + KvScalesOffset(dim)) + slot * scales);
}

}  // namespace

void StoreKvRow(const Ops& ops, KvType type, const float* x, int64_t heads,
                int64_t dim, int64_t slot, std::byte* tiles) {
  CHECK(type == KvType::kF16 || dim <= kMostQ8KvDim);
  for (int64_t head = 0; head < heads; ++head) {
    std::byte* const tile = tiles + head * KvTileBytes(type, dim);
    if (type == KvType::kQ8_0) {
      StoreQ8Row(ops, x + head * dim, dim, slot, tile);
    } else {
      ops.to_f16(x + head * dim, dim,
                 reinterpret_cast<uint16_t*>(tile) + slot * dim);
    }
  }
}

}  // namespace coldstream
