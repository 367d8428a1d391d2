#include "kernels/kv_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/available_rows.h"
#include "tests/kernels/kv_tiles.h"

namespace coldstream {
namespace {

constexpr int64_t kHeads = 3;
constexpr int64_t kSlot = 41;
const std::vector<int64_t> kDims = {1, 8, 20, 32, 80, 100, 128, 512};

std::vector<float> Row(int64_t dim, double magnitude) {
  std::mt19937 random(static_cast<unsigned>(dim));
  std::normal_distribution<double> normal(0, magnitude);
  std::vector<float> x(static_cast<size_t>(kHeads * dim));
  for (float& v : x) v = static_cast<float>(normal(random));
  return x;
}

// Tiles of all heads, filled with 0x5a before the row was stored.
std::vector<std::byte> Stored(const Ops& ops, KvType type,
                              const std::vector<float>& x) {
  const int64_t dim = std::ssize(x) / kHeads;
  std::vector<std::byte> tiles(
      static_cast<size_t>(kHeads * KvTileBytes(type, dim)), std::byte{0x5a});
  StoreKvRow(ops, type, x.data(), kHeads, dim, kSlot, tiles.data());
  return tiles;
}

TEST(KvRowsTest, AHalfIsTheValueRounded) {
  for (const Ops* ops : AvailableRows()) {
    for (const int64_t dim : kDims) {
      const std::vector<float> x = Row(dim, 3);
      const auto tiles = Stored(*ops, KvType::kF16, x);
      for (int64_t i = 0; i < kHeads * dim; ++i)
        ASSERT_EQ(
            KvHalf(KvType::kF16,
                   tiles.data() + i / dim * KvTileBytes(KvType::kF16, dim), dim,
                   kSlot, i % dim),
            F32ToF16(x[static_cast<size_t>(i)]))
            << ops->name << ", " << dim << " wide, value " << i;
    }
  }
}

// Half a step of the largest of 32 neighbours, the scale's rounding to f16 at
// up to 127 steps, and the value's.
double Bound(const std::vector<float>& x, int64_t dim, int64_t i) {
  const int64_t begin = i - i % dim % 32;
  const int64_t end = std::min(begin + 32, i - i % dim + dim);
  float largest = 0;
  for (int64_t j = begin; j < end; ++j)
    largest = std::max(largest, std::fabs(x[static_cast<size_t>(j)]));
  return double{largest} * (0.5 / 127 + 2 * 0x1p-11);
}

TEST(KvRowsTest, AQuantisedValueIsWithinHalfAStep) {
  for (const Ops* ops : AvailableRows()) {
    for (const int64_t dim : kDims) {
      for (const double magnitude : {1e-2, 1.0, 1e3}) {
        const std::vector<float> x = Row(dim, magnitude);
        const auto tiles = Stored(*ops, KvType::kQ8_0, x);
        for (int64_t i = 0; i < kHeads * dim; ++i) {
          const std::byte* const tile =
              tiles.data() + i / dim * KvTileBytes(KvType::kQ8_0, dim);
          ASSERT_NEAR(
              F16ToF32(KvHalf(KvType::kQ8_0, tile, dim, kSlot, i % dim)),
              x[static_cast<size_t>(i)], Bound(x, dim, i))
              << ops->name << ", " << dim << " wide, value " << i;
        }
      }
    }
  }
}

TEST(KvRowsTest, EveryRowOfTheTableStoresTheSameBytes) {
  for (const KvType type : {KvType::kF16, KvType::kQ8_0})
    for (const int64_t dim : kDims)
      for (const Ops* ops : AvailableRows())
        EXPECT_EQ(Stored(*ops, type, Row(dim, 1)),
                  Stored(**OpsFor(Isa::kScalar), type, Row(dim, 1)))
            << ops->name << ", " << NameOf(type) << ", " << dim << " wide";
}

TEST(KvRowsTest, OtherRowsStayAsTheyAre) {
  for (const int64_t dim : kDims) {
    auto tiles = Stored(**SelectOps(), KvType::kQ8_0, Row(dim, 1));
    const int64_t groups = KvScales(dim);
    for (int64_t h = 0; h < kHeads; ++h) {
      std::byte* const tile =
          tiles.data() + h * KvTileBytes(KvType::kQ8_0, dim);
      std::fill_n(tile + kSlot * dim, dim, std::byte{0x5a});
      std::fill_n(tile + 64 * dim + kSlot * groups * 2, groups * 2,
                  std::byte{0x5a});
    }
    EXPECT_EQ(tiles, std::vector<std::byte>(tiles.size(), std::byte{0x5a}))
        << dim;
  }
}

TEST(KvRowsTest, NeighboursOfWhatIsNotFiniteAreNan) {
  for (const Ops* ops : AvailableRows()) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                            -std::numeric_limits<float>::infinity()}) {
      std::vector<float> x = Row(80, 1);
      x[33] = bad;
      const auto tiles = Stored(*ops, KvType::kQ8_0, x);
      for (int64_t i = 0; i < 80; ++i)
        EXPECT_EQ(std::isnan(F16ToF32(
                      KvHalf(KvType::kQ8_0, tiles.data(), 80, kSlot, i))),
                  i / 32 == 1)
            << ops->name << ", value " << i;
    }
  }
}

}  // namespace
}  // namespace coldstream
