#include "tests/simt/lane_order.h"

#include <vector>

#include "gtest/gtest.h"

namespace coldstream::simt {
namespace {

std::vector<uint64_t> Images(LaneOrder::Kind kind, uint64_t n, uint64_t seed) {
  const Permutation permutation(kind, n, &seed);
  std::vector<uint64_t> images;
  for (uint64_t i = 0; i < n; ++i) images.push_back(permutation(i));
  return images;
}

TEST(LaneOrderTest, ForwardAndReverseAreByNumber) {
  EXPECT_EQ(Images(LaneOrder::kForward, 4, 1),
            (std::vector<uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(Images(LaneOrder::kReverse, 4, 1),
            (std::vector<uint64_t>{3, 2, 1, 0}));
}

TEST(LaneOrderTest, EachImageComesOnce) {
  for (const auto kind :
       {LaneOrder::kForward, LaneOrder::kReverse, LaneOrder::kShuffled}) {
    for (const uint64_t n : {1, 2, 3, 12, 32, 1000}) {
      std::vector<bool> seen(n);
      for (const uint64_t image : Images(kind, n, n)) {
        ASSERT_LT(image, n);
        ASSERT_FALSE(seen[image]);
        seen[image] = true;
      }
    }
  }
}

TEST(LaneOrderTest, SeedsShuffleDifferently) {
  EXPECT_NE(Images(LaneOrder::kShuffled, 32, 1),
            Images(LaneOrder::kShuffled, 32, 2));
}

TEST(LaneOrderTest, TheSwitchGivesBackWhatWasSet) {
  SetLaneOrder({LaneOrder::kShuffled, 77});
  EXPECT_EQ(GetLaneOrder().kind, LaneOrder::kShuffled);
  EXPECT_EQ(GetLaneOrder().seed, 77u);
  EXPECT_EQ(NameOf(GetLaneOrder()), "shuffled by 77");
}

}  // namespace
}  // namespace coldstream::simt
