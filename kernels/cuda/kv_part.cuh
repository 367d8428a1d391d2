// How the attention kernels read the cache: eight neighbours of a row at a
// time, as halves, whatever they are stored as.
//
//   KvPart<type> part = KvPart<type>::Load(tile, row, i, dim);   // in flight
//   uint4 halves = part.Halves();    // values [8 i, 8 i + 8), zero past the
//   end
//
// See kernels/kv_type.h for a tile's layout.
#pragma once

#include "kernels/cuda/cuda_language.cuh"
#include "kernels/kv_type.h"

namespace coldstream::cuda {

template <KvType type>
struct KvPart;

template <>
struct KvPart<KvType::kF16> {
  uint4 halves;

  __device__ static KvPart Load(const std::byte* tile, int row, int part,
                                int dim) {
    const uint16_t* const from =
        reinterpret_cast<const uint16_t*>(tile) + row * dim;
    if (dim % 8 == 0) return {reinterpret_cast<const uint4*>(from)[part]};
    unsigned words[4];
    for (int i = 0; i < 4; ++i) {
      const int at = part * 8 + i * 2;
      const unsigned low = at < dim ? from[at] : 0u;
      const unsigned high = at + 1 < dim ? from[at + 1] : 0u;
      words[i] = high << 16 | low;
    }
    return {make_uint4(words[0], words[1], words[2], words[3])};
  }
  __device__ static KvPart Zero() { return {make_uint4(0, 0, 0, 0)}; }
  __device__ uint4 Halves() const { return halves; }
};

template <>
struct KvPart<KvType::kQ8_0> {
  uint2 q;  // eight int8
  unsigned scale;

  __device__ static KvPart Load(const std::byte* tile, int row, int part,
                                int dim) {
    const uint8_t* const from =
        reinterpret_cast<const uint8_t*>(tile) + row * dim;
    const unsigned scale = reinterpret_cast<const uint16_t*>(
        tile + KvScalesOffset(dim))[row * static_cast<int>(KvScales(dim)) +
                                    part * 8 / kKvScaleValues];
    if (dim % 8 == 0)
      return {reinterpret_cast<const uint2*>(from)[part], scale};
    unsigned words[2] = {0, 0};
    for (int i = 0; i < 8 && part * 8 + i < dim; ++i)
      words[i / 4] |= static_cast<unsigned>(from[part * 8 + i]) << (i % 4 * 8);
    return {make_uint2(words[0], words[1]), scale};
  }
  __device__ static KvPart Zero() { return {make_uint2(0, 0), 0}; }
  __device__ uint4 Halves() const {
    return make_uint4(TwoHalves(q.x), TwoHalves(q.x >> 16), TwoHalves(q.y),
                      TwoHalves(q.y >> 16));
  }

 private:
  __device__ unsigned OneHalf(unsigned byte) const {
    const float value =
        __half2float(__ushort_as_half(static_cast<unsigned short>(scale))) *
        static_cast<float>(static_cast<int8_t>(byte & 0xff));
    return __half_as_ushort(__float2half_rn(value));
  }
  __device__ unsigned TwoHalves(unsigned bytes) const {
    return OneHalf(bytes >> 8) << 16 | OneHalf(bytes);
  }
};

}  // namespace coldstream::cuda
