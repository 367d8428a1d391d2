// Rows of keys and values into their tiles.
#ifndef COLDSTREAM_KERNELS_KV_ROWS_H_
#define COLDSTREAM_KERNELS_KV_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kv_type.h"
#include "kernels/ops.h"

namespace coldstream {

// One token's keys, or values: x [heads, dim] to row `slot` of the tiles
// [heads]. Of kQ8_0 dim is at most kMostQ8KvDim.
void StoreKvRow(const Ops& ops, KvType type, const float* x, int64_t heads,
                int64_t dim, int64_t slot, std::byte* tiles);

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_KV_ROWS_H_
