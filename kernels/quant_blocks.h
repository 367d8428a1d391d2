// The blocks of the quantised GGUF types, byte for byte.
//
// Every member is made of bytes, so a block may lie at any address; 16-bit
// members are little-endian. Only data lives here: the ISA files include it.
//
// Notation below: value i of a block; q its stored number; d, m (dmin) the
// block's F16 scale and minimum. Source: GGUF specification and the ggml type
// definitions it names; MXFP4 from the OCP Microscaling Formats v1.0.
#ifndef COLDSTREAM_KERNELS_QUANT_BLOCKS_H_
#define COLDSTREAM_KERNELS_QUANT_BLOCKS_H_

#include <cstdint>

namespace coldstream {

// --- 32 values ---------------------------------------------------------------
// 4-bit numbers are packed alike everywhere in this group: q[i] is the low half
// of qs[i] for i < 16, the high half of qs[i - 16] otherwise. The fifth bit of
// a 5-bit number is bit i of qh.

struct BlockQ8_0 {  // d * q, q signed
  uint8_t d[2];
  int8_t qs[32];
};
struct BlockQ4_0 {  // d * (q - 8)
  uint8_t d[2];
  uint8_t qs[16];
};
struct BlockQ4_1 {  // d * q + m
  uint8_t d[2];
  uint8_t m[2];
  uint8_t qs[16];
};
struct BlockQ5_0 {  // d * (q - 16)
  uint8_t d[2];
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ5_1 {  // d * q + m
  uint8_t d[2];
  uint8_t m[2];
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockIQ4_NL {  // d * kIq4Values[q]
  uint8_t d[2];
  uint8_t qs[16];
};
struct BlockMXFP4 {  // 2^(e - 128) * kMxfp4Values[q]
  uint8_t e;
  uint8_t qs[16];
};

// --- 256 values --------------------------------------------------------------

// Sixteen groups of 16: d * (scales & 15) * q - dmin * (scales >> 4), 2-bit q.
// The values lie in two halves of 128; in a half, value 32 j + l is bits
// 2 j, 2 j + 1 of qs[l].
struct BlockQ2_K {
  uint8_t scales[16];
  uint8_t qs[64];
  uint8_t d[2];
  uint8_t dmin[2];
};

// Sixteen groups of 16: d * (scale - 32) * (q - 4), 3-bit q: two bits in qs as
// in Q2_K, the third is bit i / 32 of hmask[i % 32]. Of the 6-bit scale of
// group g, the low four bits are a half of scales[g % 8] (low for g < 8), the
// high two are bits 2 (g / 4), 2 (g / 4) + 1 of scales[8 + g % 4].
struct BlockQ3_K {
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  uint8_t d[2];
};

// Eight groups of 32: d * scale * q - dmin * min, 4-bit q. Value 64 j + l is
// the low half of qs[32 j + l], 64 j + 32 + l the high half. Groups 0..3: scale
// is the low six bits of scales[g], min those of scales[4 + g]. Groups 4..7:
// their low four bits are the low (scale) and high (min) half of scales[4 + g],
// their high two bits the top of scales[g - 4] and of scales[g].
struct BlockQ4_K {
  uint8_t d[2];
  uint8_t dmin[2];
  uint8_t scales[12];
  uint8_t qs[128];
};

// As Q4_K, with a fifth bit: bit i / 32 of qh[i % 32].
struct BlockQ5_K {
  uint8_t d[2];
  uint8_t dmin[2];
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};

// Sixteen groups of 16: d * scale * (q - 32), 6-bit q, signed scale. The values
// lie in two halves of 128; in a half, the low four bits of values l and 64 + l
// (l < 64) are the halves of ql[l], the high two of value 32 j + l are bits
// 2 j, 2 j + 1 of qh[l].
struct BlockQ6_K {
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint8_t d[2];
};

// Eight groups of 32, each packed as IQ4_NL: d * (scale - 32) * kIq4Values[q].
// Of the 6-bit scale of group g, the low four bits are a half of scales_l[g/2]
// (low for even g), the high two are bits 2 g, 2 g + 1 of scales_h.
struct BlockIQ4_XS {
  uint8_t d[2];
  uint8_t scales_h[2];
  uint8_t scales_l[4];
  uint8_t qs[128];
};

static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_0) == 18 &&
              sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 &&
              sizeof(BlockQ5_1) == 24 && sizeof(BlockIQ4_NL) == 18 &&
              sizeof(BlockMXFP4) == 17 && sizeof(BlockQ2_K) == 84 &&
              sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 &&
              sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210 &&
              sizeof(BlockIQ4_XS) == 136);

// The non-linear 4-bit grid of IQ4_NL and IQ4_XS.
inline constexpr int8_t kIq4Values[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// Twice the E2M1 values of MXFP4, so that they are whole.
inline constexpr int8_t kMxfp4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_QUANT_BLOCKS_H_
