// KiB, MiB and GiB in bytes, for sizes in code: 64 * kMiB.
#ifndef COLDSTREAM_BASE_BYTE_UNITS_H_
#define COLDSTREAM_BASE_BYTE_UNITS_H_

#include <cstdint>

namespace coldstream {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_BYTE_UNITS_H_
