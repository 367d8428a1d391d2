// The types with blocks of 256 values as BlockParts. Layouts:
// kernels/quant_blocks.h.
//
// Eight lanes share a block, 32 values each. Q2_K, Q3_K and Q6_K lie in halves
// of 128 values, so lane `part` works in half part / 4 there, on the columns
// that part % 4 says.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cuda/block_part.cuh"
#include "kernels/cuda/cuda_language.cuh"
#include "kernels/cuda/load_words.cuh"
#include "kernels/quant_blocks.h"

namespace coldstream::cuda {

template <DType type, int bytes>
struct Block256 {
  static constexpr DType kType = type;
  static constexpr int kValues = 256;
  static constexpr int kBytes = bytes;
  static constexpr int kParts = 8;
};

// Scales and minima of groups 2 j and 2 j + 1 of Q4_K and Q5_K, each in a byte
// of the low half word. `words`: the twelve bytes they are packed in.
struct PackedPair {
  uint32_t scales;
  uint32_t minima;
};
__device__ inline PackedPair UnpackScales(const uint32_t* words, int j) {
  const int shift = 16 * (j % 2);
  const uint32_t first = words[0] >> shift;
  const uint32_t second = words[1] >> shift;
  if (j < 2) return {first & 0x3f3fu, second & 0x3f3fu};
  const uint32_t third = words[2] >> shift;
  return {(third & 0x0f0fu) | (first >> 2 & 0x3030u),
          (third >> 4 & 0x0f0fu) | (second >> 2 & 0x3030u)};
}

// Q4_K and Q5_K: lane `part` takes bytes [16 h, 16 h + 16) of the 32 that hold
// groups 2 j and 2 j + 1, with j = part / 2 and h = part % 2.
template <DType type, int bytes>
struct PairedBlock256 : Block256<type, bytes> {
  using Part = BlockPart<2, 4, true>;

  static __device__ int GroupBegin(int part, int group) {
    return 64 * (part / 2) + 32 * group + 16 * (part % 2);
  }
  // `head`: d and dmin, then the packed scales.
  static __device__ void SetScales(const uint32_t (&head)[4], int part,
                                   Part* out) {
    out->d = LowHalf(head[0]);
    out->dmin = HighHalf(head[0]);
    const PackedPair pair = UnpackScales(head + 1, part / 2);
    COLDSTREAM_UNROLL
    for (int group = 0; group < 2; ++group) {
      out->scale[group] = static_cast<int>(pair.scales >> (8 * group) & 0xffu);
      out->min[group] = static_cast<int>(pair.minima >> (8 * group) & 0xffu);
    }
  }
  template <typename Words>
  static __device__ void LoadNibbles(const uint8_t* qs, int part, Part* out) {
    uint32_t packed[4];
    Words::Load(qs + 16 * part, packed);
    COLDSTREAM_UNROLL
    for (int i = 0; i < 4; ++i) {
      out->q[0][i] = packed[i] & 0x0f0f0f0fu;
      out->q[1][i] = packed[i] >> 4 & 0x0f0f0f0fu;
    }
  }
};

struct Q4_KBlock : PairedBlock256<DType::kQ4_K, sizeof(BlockQ4_K)> {
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    Part out;
    uint32_t head[4];
    Words::Load(block, head);
    SetScales(head, part, &out);
    LoadNibbles<Words>(block + 16, part, &out);
    return out;
  }
};

struct Q5_KBlock : PairedBlock256<DType::kQ5_K, sizeof(BlockQ5_K)> {
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    Part out;
    uint32_t head[4];
    uint32_t high[4];
    Words::Load(block, head);
    Words::Load(block + 16 + 16 * (part % 2), high);
    SetScales(head, part, &out);
    LoadNibbles<Words>(block + 48, part, &out);
    const int bit = 2 * (part / 2);  // of group 0; the next one of group 1
    COLDSTREAM_UNROLL
    for (int i = 0; i < 4; ++i) {
      const uint32_t bits = high[i] >> bit;
      out.q[0][i] |= (bits & 0x01010101u) << 4;
      out.q[1][i] |= (bits & 0x02020202u) << 3;
    }
    return out;
  }
};

// Bytes [16 c, 16 c + 16) of the half's 64 of ql: values 16 c.. of the half in
// the low halves, 64 + 16 c.. in the high ones.
struct Q6_KBlock : Block256<DType::kQ6_K, sizeof(BlockQ6_K)> {
  using Part = BlockPart<2, 4, false>;

  static __device__ int GroupBegin(int part, int group) {
    return 128 * (part / 4) + 64 * group + 16 * (part % 4);
  }
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    const int half = part / 4;
    const int c = part % 4;
    Part out;
    uint32_t low[4];
    uint32_t high[4];
    Words::Load(block + 16 * part, low);
    Words::Load(block + 128 + 32 * half + 16 * (c % 2), high);
    COLDSTREAM_UNROLL
    for (int i = 0; i < 4; ++i) {
      const uint32_t bits = high[i] >> (2 * (c / 2));
      out.q[0][i] =
          LessBias<32>((low[i] & 0x0f0f0f0fu) | (bits & 0x03030303u) << 4);
      out.q[1][i] =
          LessBias<32>((low[i] >> 4 & 0x0f0f0f0fu) | (bits & 0x30303030u));
    }
    const int8_t* scales = reinterpret_cast<const int8_t*>(block + 192);
    out.scale[0] = scales[8 * half + c];
    out.scale[1] = scales[8 * half + 4 + c];
    out.d = LoadHalf(block + 208);
    return out;
  }
};

// Q2_K and Q3_K: bytes [8 c, 8 c + 8) of the half's 32 of qs, each with one
// number of four groups: values 32 j + 8 c.. of the half, j = 0..3.
template <DType type, int bytes, bool minima>
struct TwoBitBlock256 : Block256<type, bytes> {
  using Part = BlockPart<4, 2, minima>;

  static __device__ int GroupBegin(int part, int group) {
    return 128 * (part / 4) + 32 * group + 8 * (part % 4);
  }
  template <typename Words>
  static __device__ void LoadTwoBits(const uint8_t* qs, int part, Part* out) {
    uint32_t packed[2];
    Words::Load(qs + 8 * part, packed);
    COLDSTREAM_UNROLL
    for (int j = 0; j < 4; ++j) {
      COLDSTREAM_UNROLL
      for (int i = 0; i < 2; ++i)
        out->q[j][i] = packed[i] >> (2 * j) & 0x03030303u;
    }
  }
};

// Of eight bytes, every other, beginning with byte c / 2: those of the 16-value
// groups 2 j + c / 2 that lane c's values are in, j = 0..3.
__device__ inline uint32_t EveryOther(const uint32_t (&words)[2], int c) {
  return __byte_perm(words[0], words[1], c < 2 ? 0x6420 : 0x7531);
}

struct Q2_KBlock : TwoBitBlock256<DType::kQ2_K, sizeof(BlockQ2_K), true> {
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    Part out;
    uint32_t scales[2];
    uint32_t head[1];
    Words::Load(block + 8 * (part / 4), scales);
    Words::Load(block + 80, head);
    LoadTwoBits<Words>(block + 16, part, &out);
    const uint32_t packed = EveryOther(scales, part % 4);
    COLDSTREAM_UNROLL
    for (int j = 0; j < 4; ++j) {
      out.scale[j] = static_cast<int>(packed >> (8 * j) & 15);
      out.min[j] = static_cast<int>(packed >> (8 * j + 4) & 15);
    }
    out.d = LowHalf(head[0]);
    out.dmin = HighHalf(head[0]);
    return out;
  }
};

struct Q3_KBlock : TwoBitBlock256<DType::kQ3_K, sizeof(BlockQ3_K), false> {
  // The 6-bit scales of the lane's four groups, each in a byte.
  static __device__ uint32_t Scales(const uint32_t (&words)[3], int part) {
    const int half = part / 4;
    const uint32_t low =
        EveryOther({words[0], words[1]}, part % 4) >> (4 * half) & 0x0f0f0f0fu;
    // Bytes c / 2 and 2 + c / 2 for even and odd j; their bits for j < 2, then
    // those for the other two.
    const uint32_t bytes =
        __byte_perm(words[2], 0, part % 4 < 2 ? 0x2020 : 0x3131);
    const uint32_t high = (bytes >> (4 * half) & 0x00000303u) |
                          (bytes >> (4 * half + 2) & 0x03030000u);
    return low | high << 4;
  }
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    Part out;
    uint32_t high[2];
    uint32_t packed[3];
    Words::Load(block + 8 * (part % 4), high);
    Words::Load(block + 96, packed);
    LoadTwoBits<Words>(block + 32, part, &out);
    const uint32_t scales = Scales(packed, part);
    COLDSTREAM_UNROLL
    for (int j = 0; j < 4; ++j) {
      COLDSTREAM_UNROLL
      for (int i = 0; i < 2; ++i) {
        const uint32_t third = high[i] >> (4 * (part / 4) + j) & 0x01010101u;
        out.q[j][i] = LessBias<4>(out.q[j][i] | third << 2);
      }
      out.scale[j] = static_cast<int>(scales >> (8 * j) & 63) - 32;
    }
    out.d = LoadHalf(block + 108);
    return out;
  }
};

// Lane `part` takes the group of that number, packed as IQ4_NL.
struct IQ4_XSBlock : Block256<DType::kIQ4_XS, sizeof(BlockIQ4_XS)> {
  using Part = BlockPart<2, 4, false>;

  static __device__ int GroupBegin(int part, int group) {
    return 32 * part + 16 * group;
  }
  template <typename Words>
  static __device__ Part Decode(const uint8_t* block, int part) {
    constexpr NibbleTable table = PackTable(kIq4Values);
    Part out;
    uint32_t head[2];  // d and scales_h, scales_l
    uint32_t packed[4];
    Words::Load(block, head);
    Words::Load(block + 8 + 16 * part, packed);
    COLDSTREAM_UNROLL
    for (int i = 0; i < 4; ++i)
      LookUpNibbles(table, packed[i], &out.q[0][i], &out.q[1][i]);
    const uint32_t low = head[1] >> (4 * part) & 15;
    const uint32_t high = head[0] >> (16 + 2 * part) & 3;
    out.scale[0] = out.scale[1] = static_cast<int>(low | high << 4) - 32;
    out.d = LowHalf(head[0]);
    return out;
  }
};

}  // namespace coldstream::cuda
