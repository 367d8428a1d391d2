// The element types of weights: one table for file parsing, planning and
// kernels, so that none of them can know a type the others lack.
//
// Ids and block layouts are those of the GGUF format specification (ggml
// tensor types). A quantised row is a whole number of blocks.
#ifndef COLDSTREAM_BASE_DTYPE_H_
#define COLDSTREAM_BASE_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"

namespace coldstream {

// Values are the GGUF type ids.
enum class DType : uint8_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39,
};

// One past the largest id; for tables indexed by DType.
inline constexpr size_t kDTypeIdLimit = 40;

struct DTypeInfo {
  DType type;
  const char* name;         // lower case: "q4_k"
  uint32_t block_elements;  // elements in one block, along a row
  uint32_t block_bytes;     // bytes of one block
};

// Every supported type, in order of id.
std::span<const DTypeInfo> AllDTypes();

// The row of the table for `type`.
const DTypeInfo& InfoOf(DType type);

// The type with this GGUF id, or nullopt if it is unknown or not supported.
std::optional<DType> DTypeFromId(uint32_t gguf_id);

// The type of this name, case ignored ("Q4_K", "bf16").
std::optional<DType> DTypeFromName(std::string_view name);

// "f32, f16, q4_0, ...": for error messages.
std::string SupportedDTypeNames();

// Bytes of a row of `elements`; `elements` must be a multiple of the block.
inline uint64_t RowBytes(DType type, uint64_t elements) {
  const DTypeInfo& info = InfoOf(type);
  DCHECK(elements % info.block_elements == 0);
  return elements / info.block_elements * info.block_bytes;
}

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_DTYPE_H_
