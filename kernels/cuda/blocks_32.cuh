// The types with blocks of 32 values as BlockParts. Layouts:
// kernels/quant_blocks.h.
//
// Two lanes share a block, 16 values each. With 4-bit numbers lane `part` takes
// bytes [8 part, 8 part + 8) of qs: values 8 part.. in the low halves, 16 + 8
// part.. in the high ones.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cuda/block_part.cuh"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/load_words.cuh"
#include "kernels/quant_blocks.h"

namespace coldstream::cuda {

// The types of 4 and 5 bits: where their values lie, and the scale of each.
template <DType type, int bytes, bool minima>
struct PackedBlock32 {
  static constexpr DType kType = type;
  static constexpr int kValues = 32;
  static constexpr int kBytes = bytes;
  static constexpr int kParts = 2;
  using Part = BlockPart<2, 2, minima>;

  static __device__ int GroupBegin(int part, int group) {
    return 16 * group + 8 * part;
  }
  static __device__ void SetScale(float d, Part* out) {
    out->d = d;
    out->scale[0] = out->scale[1] = 1;
  }
  static __device__ void SetScaleAndMinimum(uint32_t d_and_m, Part* out) {
    SetScale(LowHalf(d_and_m), out);
    out->dmin = -HighHalf(d_and_m);  // these types add theirs
    out->min[0] = out->min[1] = 1;
  }
  // The 4-bit numbers as they are.
  template <typename Words>
  static __device__ void LoadNibbles(const uint8_t* qs, int part, Part* out) {
    uint32_t packed[2];
    Words::Load(qs + 8 * part, packed);
    COLDSTREAM_UNROLL
    for (int i = 0; i < 2; ++i) {
      out->q[0][i] = packed[i] & 0x0f0f0f0fu;
      out->q[1][i] = packed[i] >> 4 & 0x0f0f0f0fu;
    }
  }
  // The fifth bits: bit i of `high` is that of value i.
  static __device__ void AddFifthBits(uint32_t high, int part, Part* out) {
    COLDSTREAM_UNROLL
    for (int group = 0; group < 2; ++group) {
      const uint32_t bits = high >> (16 * group + 8 * part);
      out->q[group][0] |= SpreadBits<4>(bits);
      out->q[group][1] |= SpreadBits<4>(bits >> 4);
    }
  }
  template <unsigned bias>
  static __device__ void Subtract(Part* out) {
    COLDSTREAM_UNROLL
    for (int group = 0; group < 2; ++group) {
      COLDSTREAM_UNROLL
      for (int i = 0; i < 2; ++i)
        out->q[group][i] = LessBias<bias>(out->q[group][i]);
    }
  }
  template <typename Words>
  static __device__ void LookUp(const NibbleTable& table, const uint8_t* qs,
                                int part, Part* out) {
    uint32_t packed[2];
    Words::Load(qs + 8 * part, packed);
    COLDSTREAM_UNROLL
    for (int i = 0; i < 2; ++i)
      LookUpNibbles(table, packed[i], &out->q[0][i], &out->q[1][i]);
  }
};

struct Q8_0Block {
  static constexpr DType kType = DType::kQ8_0;
  static constexpr int kValues = 32;
  static constexpr int kBytes = sizeof(BlockQ8_0);
  static constexpr int kParts = 2;
  using Part = BlockPart<1, 4, false>;

  static __device__ int GroupBegin(int part, int) { return 16 * part; }
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    Part out;
    out.d = LoadHalf(block);
    out.scale[0] = 1;
    Words::Load(block + 2 + 16 * part, out.q[0]);
    return out;
  }
};

struct Q4_0Block : PackedBlock32<DType::kQ4_0, sizeof(BlockQ4_0), false> {
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    Part out;
    SetScale(LoadHalf(block), &out);
    LoadNibbles<Words>(block + 2, part, &out);
    Subtract<8>(&out);
    return out;
  }
};

struct Q4_1Block : PackedBlock32<DType::kQ4_1, sizeof(BlockQ4_1), true> {
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    Part out;
    uint32_t head[1];
    Words::Load(block, head);
    SetScaleAndMinimum(head[0], &out);
    LoadNibbles<Words>(block + 4, part, &out);
    return out;
  }
};

struct Q5_0Block : PackedBlock32<DType::kQ5_0, sizeof(BlockQ5_0), false> {
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    Part out;
    SetScale(LoadHalf(block), &out);
    uint32_t high[1];
    Words::Load(block + 2, high);
    LoadNibbles<Words>(block + 6, part, &out);
    AddFifthBits(high[0], part, &out);
    Subtract<16>(&out);
    return out;
  }
};

struct Q5_1Block : PackedBlock32<DType::kQ5_1, sizeof(BlockQ5_1), true> {
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    Part out;
    uint32_t head[2];  // scale and minimum, fifth bits
    Words::Load(block, head);
    SetScaleAndMinimum(head[0], &out);
    LoadNibbles<Words>(block + 8, part, &out);
    AddFifthBits(head[1], part, &out);
    return out;
  }
};

struct IQ4_NLBlock : PackedBlock32<DType::kIQ4_NL, sizeof(BlockIQ4_NL), false> {
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    constexpr NibbleTable table = PackTable(kIq4Values);
    Part out;
    SetScale(LoadHalf(block), &out);
    LookUp<Words>(table, block + 2, part, &out);
    return out;
  }
};

struct MXFP4Block : PackedBlock32<DType::kMXFP4, sizeof(BlockMXFP4), false> {
  // 2^(e - 128): half of the E8M0 scale, since kMxfp4Values are doubled. The
  // two smallest are subnormal.
  static __device__ float HalfOfE8M0(unsigned e) {
    return __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  }
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    constexpr NibbleTable table = PackTable(kMxfp4Values);
    Part out;
    SetScale(HalfOfE8M0(block[0]), &out);
    LookUp<Words>(table, block + 1, part, &out);
    return out;
  }
};

}  // namespace coldstream::cuda
