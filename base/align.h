// Rounding of offsets and sizes to a multiple.
#ifndef COLDSTREAM_BASE_ALIGN_H_
#define COLDSTREAM_BASE_ALIGN_H_

#include <cstdint>

namespace coldstream {

// `alignment` is at least 1; it need not be a power of two. AlignUp wants
// value + alignment - 1 to fit in 64 bits.
constexpr uint64_t AlignDown(uint64_t value, uint64_t alignment) {
  return value / alignment * alignment;
}

constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return AlignDown(value + alignment - 1, alignment);
}

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_ALIGN_H_
