// Whether two sequences of floats have the same bits: 0 is not -0, and a NaN is
// itself.
#ifndef COLDSTREAM_TESTS_SUPPORT_SAME_BITS_H_
#define COLDSTREAM_TESTS_SUPPORT_SAME_BITS_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace coldstream {

inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  return std::ranges::equal(a, b, {}, bits, bits);
}

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_SAME_BITS_H_
