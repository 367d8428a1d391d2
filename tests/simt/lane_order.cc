#include "tests/simt/lane_order.h"

#include <atomic>
#include <numeric>

namespace coldstream::simt {
namespace {

// Kind and seed in one word.
std::atomic<uint64_t> current_order = 0;

// Source: Steele, Lea & Flood 2014, "Fast splittable pseudorandom number
// generators" (SplitMix64).
uint64_t Next(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

void SetLaneOrder(LaneOrder order) {
  current_order = uint64_t{order.kind} << 32 | order.seed;
}

LaneOrder GetLaneOrder() {
  const uint64_t word = current_order;
  return {static_cast<LaneOrder::Kind>(word >> 32),
          static_cast<uint32_t>(word)};
}

std::string NameOf(LaneOrder order) {
  switch (order.kind) {
    case LaneOrder::kForward:
      return "forward";
    case LaneOrder::kReverse:
      return "reverse";
    case LaneOrder::kShuffled:
      return "shuffled by " + std::to_string(order.seed);
  }
  return "";
}

// (offset + step i) mod n, step and n without a common divisor. n < 2^32, so
// that nothing overflows.
Permutation::Permutation(LaneOrder::Kind kind, uint64_t n, uint64_t* random)
    : n_(n) {
  if (n < 2 || kind == LaneOrder::kForward) return;
  if (kind == LaneOrder::kReverse) {
    offset_ = n - 1;
    step_ = n - 1;
    return;
  }
  const uint64_t word = Next(random);
  offset_ = (word >> 32) % n;
  step_ = (word & 0xffffffffu) % n;
  while (std::gcd(step_, n) != 1) step_ = (step_ + 1) % n;
}

}  // namespace coldstream::simt
