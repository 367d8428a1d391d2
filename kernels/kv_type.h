// How keys and values of past tokens are stored.
//
// A tile is one KV head's keys, or values, of one block: kKvBlockTokens rows.
//   kF16   f16  value[64][dim]
//   kQ8_0  int8 q[64][dim]               value = f16(scale * q), so that a
//          f16  scale[64][ceil(dim/32)]  tile stands for one of f16
// 32 neighbours of a row share a scale: the 8.5 bits a value of GGUF's block of
// that name, as arrays that are read by whole words. Largest magnitude / 127,
// quantised as rows of ActivationFormat::kQ8_32 are (kernels/activations.h) and
// rounded to f16; a NaN or an infinity makes its 32 values NaN. A tile is a
// multiple of 64 bytes long.
#ifndef COLDSTREAM_KERNELS_KV_TYPE_H_
#define COLDSTREAM_KERNELS_KV_TYPE_H_

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace coldstream {

enum class KvType : uint8_t { kF16, kQ8_0 };

// Tokens in one block of the KV cache, and keys in one attention tile.
inline constexpr int64_t kKvBlockTokens = 64;
inline constexpr int64_t kKvScaleValues = 32;
// Widest head that attention takes as kQ8_0.
inline constexpr int64_t kMostQ8KvDim = 512;

// Static: the ISA files must not share an inline function's one copy.
static constexpr int64_t KvScales(int64_t dim) {
  return (dim + kKvScaleValues - 1) / kKvScaleValues;
}
// Where the scales of a tile of kQ8_0 begin, in bytes.
static constexpr int64_t KvScalesOffset(int64_t dim) {
  return kKvBlockTokens * dim;
}
static constexpr int64_t KvTileBytes(KvType type, int64_t dim) {
  return kKvBlockTokens *
         (type == KvType::kF16 ? 2 * dim : dim + 2 * KvScales(dim));
}

// As on the command line: "f16", "q8_0".
static constexpr const char* NameOf(KvType type) {
  return type == KvType::kF16 ? "f16" : "q8_0";
}

// Errors: InvalidArgument (neither of the two).
StatusOr<KvType> ParseKvType(std::string_view name);

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_KV_TYPE_H_
