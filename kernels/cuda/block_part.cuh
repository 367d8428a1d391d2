// What one lane takes of a block of quantised weights: 16 or 32 of its values,
// decoded to 8-bit numbers, four in a word.
//
// The numbers come in groups that share a scale. Value of number q in group g:
//
//   d * scale[g] * q - dmin * min[g]        (no second term without minima)
//
// The block types (kernels/cuda/blocks_32.cuh, blocks_256.cuh) each say
//
//   kType, kValues, kBytes   of a block
//   kParts                   lanes that share a block
//   Part                     a BlockPart
//   GroupBegin(part, group)  which value of the block a group begins with
//   Decode<Words>(block, part)
//
// Neighbouring lanes take neighbouring bytes. Shared by the product and by
// dequantisation, so that both read the same bits.
#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_language.cuh"

namespace coldstream::cuda {

template <int groups, int words, bool minima>
struct BlockPart {
  static constexpr int kGroups = groups;
  static constexpr int kWords = words;  // of a group
  static constexpr bool kMinima = minima;

  uint32_t q[groups][words];
  int scale[groups];
  int min[groups];  // with minima only
  float d;
  float dmin;
};

// Four numbers below 128, each less `bias` (at most 128): adding 128 - bias
// stays below 256, so that no byte carries into the next, and the top bit
// turns.
template <unsigned bias>
__device__ inline uint32_t LessBias(uint32_t bytes) {
  return (bytes + (128 - bias) * 0x01010101u) ^ 0x80808080u;
}

// Four bytes of `bits` spread to bit `at` of four bytes each: bit i of the low
// four to byte i.
template <int at>
__device__ inline uint32_t SpreadBits(uint32_t bits) {
  // Bit i lands on bit 8 i: the product's other terms miss those places.
  return ((bits & 15) * 0x00204081u & 0x01010101u) << at;
}

// Sixteen signed bytes as four words: what a 4-bit number stands for.
struct NibbleTable {
  uint32_t words[4];
};

__host__ __device__ constexpr NibbleTable PackTable(
    const int8_t (&values)[16]) {
  NibbleTable table = {};
  for (int i = 0; i < 16; ++i)
    table.words[i / 4] |= (static_cast<uint32_t>(values[i]) & 0xffu)
                          << (8 * (i % 4));
  return table;
}

// The values of the eight 4-bit numbers of `packed`: those of the low halves of
// its bytes in *low, of the high halves in *high.
__device__ inline void LookUpNibbles(const NibbleTable& table, uint32_t packed,
                                     uint32_t* low, uint32_t* high) {
  // A selector takes its three low bits; the fourth chooses between the two
  // halves of the table.
  const uint32_t index = packed & 0x77777777u;
  const uint32_t upper = (packed & 0x88888888u) >> 1;
  uint32_t halves[2];  // values of bytes 0 and 1, of bytes 2 and 3
  COLDSTREAM_UNROLL
  for (int i = 0; i < 2; ++i) {
    const uint32_t first =
        __byte_perm(table.words[0], table.words[1], index >> (16 * i));
    const uint32_t second =
        __byte_perm(table.words[2], table.words[3], index >> (16 * i));
    halves[i] =
        __byte_perm(first, second, 0x3210u + (upper >> (16 * i) & 0xffffu));
  }
  *low = __byte_perm(halves[0], halves[1], 0x6420);
  *high = __byte_perm(halves[0], halves[1], 0x7531);
}

}  // namespace coldstream::cuda
