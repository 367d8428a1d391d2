#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace coldstream {
namespace {

uint32_t Bits(float f) { return std::bit_cast<uint32_t>(f); }

bool IsNaN16(uint16_t h) { return (h & 0x7c00) == 0x7c00 && (h & 0x3ff) != 0; }

// Independent of the code under test: the value by its definition, in double.
double F16Value(uint16_t h) {
  const int exponent = (h >> 10) & 0x1f;
  const int mantissa = h & 0x3ff;
  const double sign = (h & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 0x1f) return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(F16, EveryOneOf65536WidensToItsValue) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto h = static_cast<uint16_t>(i);
    const float wide = F16ToF32(h);
    if (IsNaN16(h)) {
      ASSERT_TRUE(std::isnan(wide)) << i;
      // What VCVTPH2PS does: sign and payload kept, made quiet.
      ASSERT_EQ(Bits(wide),
                (i & 0x8000u) << 16 | 0x7fc00000u | (i & 0x3ffu) << 13);
    } else {
      ASSERT_EQ(static_cast<double>(wide), F16Value(h)) << i;
      ASSERT_EQ(std::signbit(wide), i >= 0x8000) << i;  // of zero too
    }
  }
}

TEST(F16, EveryOneOf65536ComesBackUnchanged) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto h = static_cast<uint16_t>(i);
    const uint16_t back = F32ToF16(F16ToF32(h));
    if (IsNaN16(h)) {
      ASSERT_EQ(back, h | 0x200) << i;
    } else {
      ASSERT_EQ(back, h);
    }
  }
}

// Every boundary between neighbours: the midpoint goes to the even one, the
// floats on either side of it to the nearer one.
TEST(F16, EveryMidpointRoundsToEvenAndItsNeighboursToTheNearest) {
  for (uint32_t i = 0; i < 0x7c00; ++i) {
    const auto low = static_cast<uint16_t>(i);
    const auto high = static_cast<uint16_t>(i + 1);
    // The step past the largest number is what it would be without a limit.
    const double next = high == 0x7c00 ? 65536.0 : F16Value(high);
    const auto middle = static_cast<float>((F16Value(low) + next) / 2);
    const uint16_t even = (low & 1) == 0 ? low : high;
    const float below = std::nextafter(middle, 0.0f);
    const float above = std::nextafter(middle, 1e9f);
    ASSERT_EQ(F32ToF16(middle), even) << middle;
    ASSERT_EQ(F32ToF16(below), low) << middle;
    ASSERT_EQ(F32ToF16(above), high) << middle;
    ASSERT_EQ(F32ToF16(-middle), even | 0x8000) << middle;
    ASSERT_EQ(F32ToF16(-below), low | 0x8000) << middle;
    ASSERT_EQ(F32ToF16(-above), high | 0x8000) << middle;
  }
}

TEST(F16, BeyondTheRangeBecomesInfinityOrZero) {
  EXPECT_EQ(F32ToF16(65504.0f), 0x7bff);
  EXPECT_EQ(F32ToF16(65519.996f), 0x7bff);
  EXPECT_EQ(F32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(F32ToF16(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(F32ToF16(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(F32ToF16(0x1p-25f), 0x0000);  // half of the least: tie to even
  EXPECT_EQ(F32ToF16(std::nextafter(0x1p-25f, 1.0f)), 0x0001);
  EXPECT_EQ(F32ToF16(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(F32ToF16(-0.0f), 0x8000);
}

TEST(F16, EveryKindOfNaNStaysNaN) {
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u})
    EXPECT_TRUE(IsNaN16(F32ToF16(std::bit_cast<float>(bits)))) << bits;
}

TEST(BF16, EveryOneOf65536ComesBackUnchanged) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto b = static_cast<uint16_t>(i);
    const float wide = BF16ToF32(b);
    ASSERT_EQ(Bits(wide), i << 16);
    if (std::isnan(wide)) {
      ASSERT_EQ(F32ToBF16(wide), i | 0x40);
    } else {
      ASSERT_EQ(F32ToBF16(wide), b);
    }
  }
}

TEST(BF16, EveryMidpointRoundsToEvenAndItsNeighboursToTheNearest) {
  for (uint32_t i = 0; i < 0x7f80; ++i) {
    for (uint32_t sign : {0u, 0x8000u}) {
      const uint32_t low = i | sign;
      const uint32_t high = low + 1;
      const uint32_t middle = low << 16 | 0x8000u;
      const uint32_t even = (low & 1) == 0 ? low : high;
      ASSERT_EQ(F32ToBF16(std::bit_cast<float>(middle)), even) << i;
      ASSERT_EQ(F32ToBF16(std::bit_cast<float>(middle - 1)), low) << i;
      ASSERT_EQ(F32ToBF16(std::bit_cast<float>(middle + 1)), high) << i;
    }
  }
}

TEST(BF16, OverflowBecomesInfinityAndNaNStaysNaN) {
  EXPECT_EQ(F32ToBF16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(F32ToBF16(std::bit_cast<float>(0x7f7f7fffu)), 0x7f7f);
  // Payload only in the lower half: dropping it would make an infinity.
  const uint16_t nan = F32ToBF16(std::bit_cast<float>(0x7f800001u));
  EXPECT_TRUE(std::isnan(BF16ToF32(nan)));
  EXPECT_TRUE(std::isnan(BF16ToF32(F32ToBF16(std::bit_cast<float>(~0u)))));
}

}  // namespace
}  // namespace coldstream
