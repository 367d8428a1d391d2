// Exact values of the 256-value blocks (K-quants and IQ4_XS).

#include "base/half.h"
#include "kernels/cpu/scalar/dequantize.h"
#include "kernels/quant_blocks.h"

namespace coldstream {
namespace {

float HalfAt(const uint8_t* bytes) {
  return F16ToF32(static_cast<uint16_t>(bytes[0] | bytes[1] << 8));
}

// Calls decode(block, out) for each block of 256 values of a row.
template <typename Block, void (*Decode)(const Block&, float*)>
void Dequantize(const std::byte* row, int64_t n, float* out) {
  const Block* blocks = reinterpret_cast<const Block*>(row);
  for (int64_t b = 0; b < n / 256; ++b) Decode(blocks[b], out + 256 * b);
}

// Two bits of value i as Q2_K, Q3_K (in qs) and Q6_K (in qh) store them.
int TwoBits(const uint8_t* bytes, int i) {
  const int in_half = i % 128;
  return bytes[32 * (i / 128) + in_half % 32] >> (2 * (in_half / 32)) & 3;
}

void DecodeQ2_K(const BlockQ2_K& block, float* out) {
  const float d = HalfAt(block.d);
  const float dmin = HalfAt(block.dmin);
  for (int i = 0; i < 256; ++i) {
    const uint8_t packed = block.scales[i / 16];
    const float scale = d * static_cast<float>(packed & 15);
    const float min = dmin * static_cast<float>(packed >> 4);
    out[i] = scale * static_cast<float>(TwoBits(block.qs, i)) - min;
  }
}

int ScaleQ3_K(const uint8_t* scales, int group) {
  const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
  const int high = scales[8 + group % 4] >> (2 * (group / 4)) & 3;
  return (low | high << 4) - 32;
}

void DecodeQ3_K(const BlockQ3_K& block, float* out) {
  const float d = HalfAt(block.d);
  for (int i = 0; i < 256; ++i) {
    const float scale = d * static_cast<float>(ScaleQ3_K(block.scales, i / 16));
    const int high = block.hmask[i % 32] >> (i / 32) & 1;
    out[i] = scale * static_cast<float>((TwoBits(block.qs, i) | high << 2) - 4);
  }
}

// Scale and min of a group of Q4_K and Q5_K.
struct ScaleMin {
  int scale;
  int min;
};

ScaleMin ScaleMinQ4_K(const uint8_t* scales, int group) {
  if (group < 4) return {scales[group] & 63, scales[4 + group] & 63};
  return {(scales[4 + group] & 15) | (scales[group - 4] >> 6) << 4,
          (scales[4 + group] >> 4) | (scales[group] >> 6) << 4};
}

// Low four bits of value i as Q4_K and Q5_K store them.
int NibbleQ4_K(const uint8_t* qs, int i) {
  return qs[32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2)) & 15;
}

void DecodeQ4_K(const BlockQ4_K& block, float* out) {
  const float d = HalfAt(block.d);
  const float dmin = HalfAt(block.dmin);
  for (int i = 0; i < 256; ++i) {
    const ScaleMin group = ScaleMinQ4_K(block.scales, i / 32);
    const float scale = d * static_cast<float>(group.scale);
    const float min = dmin * static_cast<float>(group.min);
    out[i] = scale * static_cast<float>(NibbleQ4_K(block.qs, i)) - min;
  }
}

void DecodeQ5_K(const BlockQ5_K& block, float* out) {
  const float d = HalfAt(block.d);
  const float dmin = HalfAt(block.dmin);
  for (int i = 0; i < 256; ++i) {
    const ScaleMin group = ScaleMinQ4_K(block.scales, i / 32);
    const float scale = d * static_cast<float>(group.scale);
    const float min = dmin * static_cast<float>(group.min);
    const int high = block.qh[i % 32] >> (i / 32) & 1;
    out[i] =
        scale * static_cast<float>(NibbleQ4_K(block.qs, i) | high << 4) - min;
  }
}

void DecodeQ6_K(const BlockQ6_K& block, float* out) {
  const float d = HalfAt(block.d);
  for (int i = 0; i < 256; ++i) {
    const int in_half = i % 128;
    const int low =
        block.ql[64 * (i / 128) + in_half % 64] >> (4 * (in_half / 64)) & 15;
    const int q = low | TwoBits(block.qh, i) << 4;
    out[i] = d * static_cast<float>(block.scales[i / 16]) *
             static_cast<float>(q - 32);
  }
}

void DecodeIQ4_XS(const BlockIQ4_XS& block, float* out) {
  const float d = HalfAt(block.d);
  const int high = block.scales_h[0] | block.scales_h[1] << 8;
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32;
    const int low = block.scales_l[group / 2] >> (4 * (group % 2)) & 15;
    const float scale =
        d * static_cast<float>((low | (high >> (2 * group) & 3) << 4) - 32);
    const int q = block.qs[16 * group + i % 16] >> (4 * (i / 16 % 2)) & 15;
    out[i] = scale * static_cast<float>(kIq4Values[q]);
  }
}

}  // namespace

DequantizeFn ScalarDequantize256(DType type) {
  switch (type) {
    case DType::kQ2_K:
      return Dequantize<BlockQ2_K, DecodeQ2_K>;
    case DType::kQ3_K:
      return Dequantize<BlockQ3_K, DecodeQ3_K>;
    case DType::kQ4_K:
      return Dequantize<BlockQ4_K, DecodeQ4_K>;
    case DType::kQ5_K:
      return Dequantize<BlockQ5_K, DecodeQ5_K>;
    case DType::kQ6_K:
      return Dequantize<BlockQ6_K, DecodeQ6_K>;
    case DType::kIQ4_XS:
      return Dequantize<BlockIQ4_XS, DecodeIQ4_XS>;
    default:
      return nullptr;
  }
}

}  // namespace coldstream
