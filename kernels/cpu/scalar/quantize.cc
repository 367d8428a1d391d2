#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/activations.h"
#include "kernels/cpu/scalar/register.h"

namespace coldstream {
namespace {

// Scale of n values and the factor that takes them to [-127, 127].
struct Scaling {
  float scale = 0;
  float inverse = 0;
};

Scaling ScalingOf(const float* x, int64_t n) {
  // Magnitudes compared as bits: a NaN is larger than an infinity.
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
    if (bits > largest) largest = bits;
  }
  const float amax = std::bit_cast<float>(largest);
  if (!std::isfinite(amax)) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const float inverse = 127.0f / amax;
  if (!std::isfinite(inverse)) return {0, 0};
  return {amax / 127.0f, inverse};
}

void QuantizeBlock(const float* x, int64_t n, float inverse, int8_t* q) {
  for (int64_t i = 0; i < n; ++i) {
    q[i] = inverse == 0 ? int8_t{0}
                        : static_cast<int8_t>(std::nearbyintf(x[i] * inverse));
  }
}

int32_t SumOf(const int8_t* q, int64_t n) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += q[i];
  return sum;
}

void QuantizeQ8_32(const float* x, int64_t k, std::byte* out) {
  int8_t* q = reinterpret_cast<int8_t*>(out);
  float* scale = reinterpret_cast<float*>(out + k);
  int32_t* sum = reinterpret_cast<int32_t*>(out + k + k / 8);
  float* scaled_sum = reinterpret_cast<float*>(out + k + k / 4);
  for (int64_t b = 0; b < k / 32; ++b) {
    const Scaling scaling = ScalingOf(x + 32 * b, 32);
    QuantizeBlock(x + 32 * b, 32, scaling.inverse, q + 32 * b);
    scale[b] = scaling.scale;
    sum[b] = SumOf(q + 32 * b, 32);
    scaled_sum[b] = scaling.scale * static_cast<float>(sum[b]);
  }
}

void QuantizeQ8_256(const float* x, int64_t k, std::byte* out) {
  int8_t* q = reinterpret_cast<int8_t*>(out);
  int16_t* sum16 = reinterpret_cast<int16_t*>(out + k);
  int16_t* sum32 = reinterpret_cast<int16_t*>(out + k + k / 8);
  float* scale = reinterpret_cast<float*>(out + k + k / 8 + k / 16);
  for (int64_t b = 0; b < k / 256; ++b) {
    const Scaling scaling = ScalingOf(x + 256 * b, 256);
    QuantizeBlock(x + 256 * b, 256, scaling.inverse, q + 256 * b);
    scale[b] = scaling.scale;
  }
  for (int64_t g = 0; g < k / 16; ++g)
    sum16[g] = static_cast<int16_t>(SumOf(q + 16 * g, 16));
  for (int64_t g = 0; g < k / 32; ++g)
    sum32[g] = static_cast<int16_t>(SumOf(q + 32 * g, 32));
}

void CopyF32(const float* x, int64_t k, std::byte* out) {
  std::memcpy(out, x, static_cast<size_t>(k) * sizeof(float));
}

}  // namespace

void RegisterScalarQuantize(Ops* ops) {
  ops->quantize[static_cast<size_t>(ActivationFormat::kF32)] = CopyF32;
  ops->quantize[static_cast<size_t>(ActivationFormat::kQ8_32)] = QuantizeQ8_32;
  ops->quantize[static_cast<size_t>(ActivationFormat::kQ8_256)] =
      QuantizeQ8_256;
}

}  // namespace coldstream
