// In which order threads that may all run do run: what hardware leaves open.
//
//   SetLaneOrder({LaneOrder::kShuffled, 7});   // launches that begin after
//
// Applies to the blocks of a grid, to the warps of a block and to the lanes of
// a warp, at the start and again after each barrier. Forward and reverse are
// by number; shuffled depends on the seed and the block alone, so that a
// failure comes again with its seed. Thread-safety: any thread may set it.
#ifndef COLDSTREAM_TESTS_SIMT_LANE_ORDER_H_
#define COLDSTREAM_TESTS_SIMT_LANE_ORDER_H_

#include <cstdint>
#include <string>

namespace coldstream::simt {

struct LaneOrder {
  enum Kind : uint8_t { kForward, kReverse, kShuffled };
  Kind kind = kForward;
  uint32_t seed = 0;
};

void SetLaneOrder(LaneOrder order);
LaneOrder GetLaneOrder();

// "forward", "reverse", "shuffled by 7".
std::string NameOf(LaneOrder order);

// The orders that a test of a kernel loops over.
inline constexpr LaneOrder kLaneOrders[] = {{LaneOrder::kForward, 0},
                                            {LaneOrder::kReverse, 0},
                                            {LaneOrder::kShuffled, 1},
                                            {LaneOrder::kShuffled, 2}};

// A bijection of [0, n), cheap to make: for n lanes, warps or blocks.
class Permutation {
 public:
  // `random` is used by kShuffled only, and changed.
  Permutation(LaneOrder::Kind kind, uint64_t n, uint64_t* random);
  uint64_t operator()(uint64_t i) const { return (offset_ + i * step_) % n_; }

 private:
  uint64_t n_;
  uint64_t offset_ = 0;
  uint64_t step_ = 1;
};

}  // namespace coldstream::simt

#endif  // COLDSTREAM_TESTS_SIMT_LANE_ORDER_H_
