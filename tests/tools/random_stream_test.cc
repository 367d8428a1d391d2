#include "tools/random_stream.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coldstream {
namespace {

TEST(RandomStreamTest, TheSameSeedGivesTheSameBits) {
  RandomStream a(7);
  RandomStream b(7);
  RandomStream c(8);
  for (int i = 0; i < 100; ++i) {
    const uint64_t value = a.Next();
    EXPECT_EQ(value, b.Next());
    EXPECT_NE(value, c.Next());
  }
}

// Five standard deviations of a fair coin tossed this often.
TEST(RandomStreamTest, EveryBitIsSetHalfOfTheTimeForAnySeed) {
  constexpr int kDraws = 40000;
  const double bound = 5 * std::sqrt(kDraws) / 2;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    RandomStream random(seed);
    std::array<int, 64> set{};
    for (int i = 0; i < kDraws; ++i) {
      const uint64_t value = random.Next();
      for (size_t bit = 0; bit < 64; ++bit)
        set[bit] += static_cast<int>(value >> bit & 1);
    }
    for (const int count : set) EXPECT_NEAR(count, kDraws / 2, bound);
  }
}

TEST(RandomStreamTest, NeighbouringValuesDifferInHalfOfTheirBits) {
  constexpr int kDraws = 40000;
  RandomStream random(3);
  uint64_t previous = random.Next();
  double different = 0;
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t value = random.Next();
    different += std::popcount(value ^ previous);
    previous = value;
  }
  // 64 bits a draw, each of variance 1/4.
  EXPECT_NEAR(different / kDraws, 32, 5 * 4 / std::sqrt(kDraws));
}

TEST(RandomStreamTest, DerivedSeedsAreDistinct) {
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 100; ++seed)
    for (uint64_t index = 0; index < 100; ++index)
      seeds.insert(RandomStream::Derive(seed, index));
  EXPECT_EQ(seeds.size(), 10000u);
}

TEST(RandomStreamTest, UnitsLieInZeroToOneAndFillIt) {
  RandomStream random(1);
  double least = 1;
  double most = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = random.NextUnit();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_LT(least, 0.01);
  EXPECT_GT(most, 0.99);
}

}  // namespace
}  // namespace coldstream
