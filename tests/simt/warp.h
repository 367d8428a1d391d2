// Warp operations of CUDA C++ (Programming Guide, "Warp Vote Functions" and
// "Warp Shuffle Functions"), for values of up to eight bytes.
#ifndef COLDSTREAM_TESTS_SIMT_WARP_H_
#define COLDSTREAM_TESTS_SIMT_WARP_H_

#include <cstdint>
#include <cstring>
#include <source_location>

#include "tests/simt/block.h"

namespace coldstream::simt {

template <typename T>
T ShuffleFrom(uint32_t mask, T value, int source,
              const std::source_location& where) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = WarpExchange(WarpOperation::kShuffle, mask, bits, source, where);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace coldstream::simt

inline void __syncwarp(
    unsigned mask = 0xffffffffu,
    std::source_location where = std::source_location::current()) {
  coldstream::simt::WarpExchange(coldstream::simt::WarpOperation::kBarrier,
                                 mask, 0, 0, where);
}

inline int __any_sync(
    unsigned mask, int predicate,
    std::source_location where = std::source_location::current()) {
  return static_cast<int>(coldstream::simt::WarpExchange(
      coldstream::simt::WarpOperation::kAny, mask, predicate != 0, 0, where));
}

inline int __all_sync(
    unsigned mask, int predicate,
    std::source_location where = std::source_location::current()) {
  return static_cast<int>(coldstream::simt::WarpExchange(
      coldstream::simt::WarpOperation::kAll, mask, predicate != 0, 0, where));
}

inline unsigned __ballot_sync(
    unsigned mask, int predicate,
    std::source_location where = std::source_location::current()) {
  return static_cast<unsigned>(
      coldstream::simt::WarpExchange(coldstream::simt::WarpOperation::kBallot,
                                     mask, predicate != 0, 0, where));
}

// Lane `source` of the caller's group of `width` lanes (a power of two).
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              std::source_location where = std::source_location::current()) {
  const int lane = coldstream::simt::LaneIndex();
  return coldstream::simt::ShuffleFrom(
      mask, value, (lane & ~(width - 1)) | (source & (width - 1)), where);
}

// Where the source is outside the group, the lane's own value.
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 std::source_location where = std::source_location::current()) {
  const int lane = coldstream::simt::LaneIndex();
  const int source = lane - static_cast<int>(delta);
  const bool inside = source >= (lane & ~(width - 1));
  return coldstream::simt::ShuffleFrom(mask, value, inside ? source : lane,
                                       where);
}

template <typename T>
T __shfl_down_sync(
    unsigned mask, T value, unsigned delta, int width = 32,
    std::source_location where = std::source_location::current()) {
  const int lane = coldstream::simt::LaneIndex();
  const int source = lane + static_cast<int>(delta);
  const bool inside = source <= (lane | (width - 1));
  return coldstream::simt::ShuffleFrom(mask, value, inside ? source : lane,
                                       where);
}

// A source in a later group gives the lane's own value; one in an earlier
// group is read.
template <typename T>
T __shfl_xor_sync(
    unsigned mask, T value, int lane_mask, int width = 32,
    std::source_location where = std::source_location::current()) {
  const int lane = coldstream::simt::LaneIndex();
  const int source = lane ^ lane_mask;
  const bool inside = source <= (lane | (width - 1));
  return coldstream::simt::ShuffleFrom(mask, value, inside ? source : lane,
                                       where);
}

#endif  // COLDSTREAM_TESTS_SIMT_WARP_H_
