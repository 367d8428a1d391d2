// A stream of 64 random bits at a time, in about a nanosecond.
//
// State walks by an odd constant (period 2^64); each value folds the 128-bit
// product of the state with a second mix of it. Not for secrets.
// Source: the multiply-and-fold mixing of the wyhash family (public domain
// idea; code and constants are ours).
#ifndef COLDSTREAM_TOOLS_RANDOM_STREAM_H_
#define COLDSTREAM_TOOLS_RANDOM_STREAM_H_

#include <cstdint>

namespace coldstream {

class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : state_(Fold(seed ^ kB, kA)) {}

  uint64_t Next() {
    state_ += kA;
    return Fold(state_, state_ ^ kB);
  }

  // Uniform in [0, 1), 53 bits.
  double NextUnit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  // A seed for stream `index` of those that belong to `seed`.
  static uint64_t Derive(uint64_t seed, uint64_t index) {
    return Fold(seed + kB, Fold(index ^ kA, kB) ^ kA);
  }

 private:
  static constexpr uint64_t kA = 0x9e3b7c5d1f62a84dull;
  static constexpr uint64_t kB = 0xd1a5c38e6b497f13ull;

  static uint64_t Fold(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^
           static_cast<uint64_t>(product >> 64);
  }

  uint64_t state_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_RANDOM_STREAM_H_
