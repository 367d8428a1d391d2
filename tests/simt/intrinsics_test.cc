#include "tests/simt/intrinsics.h"

#include <random>

#include "gtest/gtest.h"
#include "tests/simt/half_types.h"

namespace coldstream {
namespace {

TEST(SimtIntrinsicsTest, Dp4aSumsFourProductsOfBytes) {
  EXPECT_EQ(__dp4a(0x01020304, 0x01010101, 5), 15);
  EXPECT_EQ(
      __dp4a(static_cast<int>(0x80ff7f01u), static_cast<int>(0x80ff7f01u), 0),
      128 * 128 + 1 + 127 * 127 + 1);
  EXPECT_EQ(__dp4a(0xff000002u, 0xff000003u, 1u), 255u * 255 + 7);
}

TEST(SimtIntrinsicsTest, BytePermPicksBytesOfBothWords) {
  EXPECT_EQ(__byte_perm(0x33221100u, 0x77665544u, 0x7531u), 0x77553311u);
  EXPECT_EQ(__byte_perm(0x33221100u, 0x77665544u, 0x0246u), 0x00224466u);
}

TEST(SimtIntrinsicsTest, FunnelShiftTakesFromTheHighWord) {
  EXPECT_EQ(__funnelshift_r(0x33221100u, 0x77665544u, 8), 0x44332211u);
  EXPECT_EQ(__funnelshift_r(0x33221100u, 0x77665544u, 0), 0x33221100u);
  EXPECT_EQ(__funnelshift_r(0x33221100u, 0x77665544u, 40), 0x44332211u);
}

TEST(SimtIntrinsicsTest, BytesAreSubtractedEachForItself) {
  EXPECT_EQ(__vsub4(0x00052010u, 0x01032010u), 0xff020000u);
}

TEST(SimtIntrinsicsTest, BitsAreCounted) {
  EXPECT_EQ(__popc(0xf0f0u), 8);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__clz(0), 32);
  EXPECT_EQ(__ffs(0), 0);
  EXPECT_EQ(__ffs(8), 4);
}

TEST(SimtIntrinsicsTest, RoundingIsToNearestEven) {
  EXPECT_EQ(__float2int_rn(2.5f), 2);
  EXPECT_EQ(__float2int_rn(3.5f), 4);
  EXPECT_EQ(__float2int_rn(-2.5f), -2);
  EXPECT_EQ(__half_as_ushort(__float2half_rn(1 + 0x1p-11f)), 0x3c00);
  EXPECT_EQ(__half2float(__ushort_as_half(0x3c01)), 1 + 0x1p-10f);
  EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16_rn(1 + 0x1p-8f)), 0x3f80);
}

}  // namespace
}  // namespace coldstream
