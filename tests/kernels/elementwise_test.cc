// add, scale, to_f16 and all_finite: exact in every row.

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/half.h"
#include "gtest/gtest.h"
#include "tests/kernels/available_rows.h"

namespace coldstream {
namespace {

const std::vector<size_t> kLengths = {0, 1, 7, 8, 15, 16, 17, 33, 100, 1000};

std::vector<float> RandomFloats(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 10);
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

TEST(ElementwiseTest, AddIsTheFloatSum) {
  for (const Ops* ops : AvailableRows()) {
    for (const size_t n : kLengths) {
      const std::vector<float> x = RandomFloats(n, 1);
      const std::vector<float> before = RandomFloats(n, 2);
      std::vector<float> out = before;
      ops->add(x.data(), static_cast<int64_t>(n), out.data());
      for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(out[i], before[i] + x[i]) << ops->name << ", " << i;
    }
  }
}

TEST(ElementwiseTest, ScaleIsTheFloatProduct) {
  for (const Ops* ops : AvailableRows()) {
    for (const size_t n : kLengths) {
      const std::vector<float> before = RandomFloats(n, 3);
      std::vector<float> x = before;
      ops->scale(0.0625f * 1.1f, static_cast<int64_t>(n), x.data());
      for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(x[i], before[i] * (0.0625f * 1.1f)) << ops->name << ", " << i;
    }
  }
}

TEST(ElementwiseTest, ToF16AgreesWithBaseBitForBit) {
  std::mt19937 random(4);
  for (const Ops* ops : AvailableRows()) {
    for (const size_t n : {1, 7, 8, 15, 16, 17, 33, 20000}) {
      std::vector<float> x(n);
      for (float& v : x) {
        // All signs and mantissas, exponents around the range of f16, and a
        // few anywhere: subnormals, overflow, infinity, NaN.
        const uint32_t bits = static_cast<uint32_t>(random());
        const uint32_t exponent = 98 + bits % 50;
        v = std::bit_cast<float>(bits % 16 == 0
                                     ? static_cast<uint32_t>(random())
                                     : (bits & 0x807fffffu) | (exponent << 23));
      }
      std::vector<uint16_t> out(n);
      ops->to_f16(x.data(), static_cast<int64_t>(n), out.data());
      for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(out[i], F32ToF16(x[i]))
            << ops->name << ", " << std::bit_cast<uint32_t>(x[i]);
    }
  }
}

TEST(ElementwiseTest, ToF16RoundsTiesToEven) {
  for (const Ops* ops : AvailableRows()) {
    const std::vector<float> x = {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 65519.996f,
                                  65520.0f,     0x1p-25f,         0x1.8p-25f};
    std::vector<uint16_t> out(x.size());
    ops->to_f16(x.data(), 6, out.data());
    EXPECT_EQ(out,
              (std::vector<uint16_t>{0x3c00, 0x3c02, 0x7bff, 0x7c00, 0, 1}))
        << ops->name;
  }
}

TEST(ElementwiseTest, AllFiniteFindsOneBadValueAnywhere) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Ops* ops : AvailableRows()) {
    for (const size_t n : kLengths) {
      std::vector<float> x(n, std::numeric_limits<float>::max());
      const int64_t count = static_cast<int64_t>(n);
      EXPECT_TRUE(ops->all_finite(x.data(), count)) << ops->name;
      for (size_t i = 0; i < n; ++i) {
        for (const float bad : {infinity, -infinity, nan, -nan}) {
          x[i] = bad;
          ASSERT_FALSE(ops->all_finite(x.data(), count))
              << ops->name << ", " << i << " of " << n;
        }
        x[i] = -1;
      }
      EXPECT_TRUE(ops->all_finite(x.data(), count)) << ops->name;
    }
  }
}

}  // namespace
}  // namespace coldstream
