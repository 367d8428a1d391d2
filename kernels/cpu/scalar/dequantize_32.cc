// Exact values of the plain types and of the 32-value blocks.

#include <bit>
#include <cstring>

#include "base/half.h"
#include "kernels/cpu/scalar/dequantize.h"
#include "kernels/quant_blocks.h"

namespace coldstream {
namespace {

float HalfAt(const uint8_t* bytes) {
  return F16ToF32(static_cast<uint16_t>(bytes[0] | bytes[1] << 8));
}

void DequantizeF32(const std::byte* row, int64_t n, float* out) {
  std::memcpy(out, row, static_cast<size_t>(n) * sizeof(float));
}

template <float (*Widen)(uint16_t)>
void Dequantize16(const std::byte* row, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    uint16_t bits;
    std::memcpy(&bits, row + 2 * i, sizeof(bits));
    out[i] = Widen(bits);
  }
}

// Calls decode(block, out) for each block of 32 values of a row.
template <typename Block, void (*Decode)(const Block&, float*)>
void Dequantize(const std::byte* row, int64_t n, float* out) {
  const Block* blocks = reinterpret_cast<const Block*>(row);
  for (int64_t b = 0; b < n / 32; ++b) Decode(blocks[b], out + 32 * b);
}

int Nibble(const uint8_t* qs, int i) {
  return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
}

int FiveBits(const uint8_t* qs, const uint8_t* qh, int i) {
  return Nibble(qs, i) | (qh[i / 8] >> (i % 8) & 1) << 4;
}

void DecodeQ8_0(const BlockQ8_0& block, float* out) {
  const float d = HalfAt(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(block.qs[i]);
}

void DecodeQ4_0(const BlockQ4_0& block, float* out) {
  const float d = HalfAt(block.d);
  for (int i = 0; i < 32; ++i)
    out[i] = d * static_cast<float>(Nibble(block.qs, i) - 8);
}

void DecodeQ4_1(const BlockQ4_1& block, float* out) {
  const float d = HalfAt(block.d);
  const float m = HalfAt(block.m);
  for (int i = 0; i < 32; ++i)
    out[i] = d * static_cast<float>(Nibble(block.qs, i)) + m;
}

void DecodeQ5_0(const BlockQ5_0& block, float* out) {
  const float d = HalfAt(block.d);
  for (int i = 0; i < 32; ++i)
    out[i] = d * static_cast<float>(FiveBits(block.qs, block.qh, i) - 16);
}

void DecodeQ5_1(const BlockQ5_1& block, float* out) {
  const float d = HalfAt(block.d);
  const float m = HalfAt(block.m);
  for (int i = 0; i < 32; ++i)
    out[i] = d * static_cast<float>(FiveBits(block.qs, block.qh, i)) + m;
}

void DecodeIQ4_NL(const BlockIQ4_NL& block, float* out) {
  const float d = HalfAt(block.d);
  for (int i = 0; i < 32; ++i)
    out[i] = d * static_cast<float>(kIq4Values[Nibble(block.qs, i)]);
}

// 2^(e - 128): half of the E8M0 scale, since kMxfp4Values are doubled. The two
// smallest are subnormal.
float HalfOfE8M0(uint8_t e) {
  const uint32_t bits =
      e < 2 ? uint32_t{0x00200000} << e : static_cast<uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(bits);
}

void DecodeMXFP4(const BlockMXFP4& block, float* out) {
  const float d = HalfOfE8M0(block.e);
  for (int i = 0; i < 32; ++i)
    out[i] = d * static_cast<float>(kMxfp4Values[Nibble(block.qs, i)]);
}

}  // namespace

DequantizeFn ScalarDequantize32(DType type) {
  switch (type) {
    case DType::kF32:
      return DequantizeF32;
    case DType::kF16:
      return Dequantize16<F16ToF32>;
    case DType::kBF16:
      return Dequantize16<BF16ToF32>;
    case DType::kQ8_0:
      return Dequantize<BlockQ8_0, DecodeQ8_0>;
    case DType::kQ4_0:
      return Dequantize<BlockQ4_0, DecodeQ4_0>;
    case DType::kQ4_1:
      return Dequantize<BlockQ4_1, DecodeQ4_1>;
    case DType::kQ5_0:
      return Dequantize<BlockQ5_0, DecodeQ5_0>;
    case DType::kQ5_1:
      return Dequantize<BlockQ5_1, DecodeQ5_1>;
    case DType::kIQ4_NL:
      return Dequantize<BlockIQ4_NL, DecodeIQ4_NL>;
    case DType::kMXFP4:
      return Dequantize<BlockMXFP4, DecodeMXFP4>;
    default:
      return nullptr;
  }
}

}  // namespace coldstream
