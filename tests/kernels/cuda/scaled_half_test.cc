#include "kernels/cuda/scaled_half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/half.h"
#include "gtest/gtest.h"
#include "tests/kernels/cuda/device_weights.h"
#include "tests/kernels/weight_rows.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"

namespace coldstream {
namespace {

struct Scaled {
  std::vector<uint16_t> half;
  std::vector<int32_t> exponents;
};

Scaled ToScaledHalf(const TensorView& rows) {
  const auto count = static_cast<size_t>(rows.rows);
  const auto stride = static_cast<size_t>(cuda::ScaledHalfStride(rows.cols));
  Scaled scaled = {std::vector<uint16_t>(count * stride, 0x7e00),
                   std::vector<int32_t>(count, 999)};
  simt::ImmediateStream stream;
  const Status status = cuda::ToScaledHalf(rows, scaled.half.data(),
                                           scaled.exponents.data(), &stream);
  EXPECT_TRUE(status.ok()) << status;
  return scaled;
}

class CudaScaledHalfTest : public testing::TestWithParam<DTypeInfo> {
 protected:
  // Each value is the row's power of two times its own rounding to F16; the
  // largest comes to [2^14, 2^15).
  void ExpectRounded(int64_t rows, int64_t cols, size_t shift) {
    WeightRows weights(GetParam().type, rows, cols,
                       static_cast<unsigned>(rows + cols));
    const DeviceWeights device(weights, shift);
    const std::vector<float> values = weights.Values();
    const Scaled scaled = ToScaledHalf(device.view());
    const int64_t stride = cuda::ScaledHalfStride(cols);
    for (int64_t r = 0; r < rows; ++r) {
      const int exponent = scaled.exponents[static_cast<size_t>(r)];
      float largest = 0;
      for (int64_t i = 0; i < stride; ++i) {
        const float value =
            i < cols ? values[static_cast<size_t>(r * cols + i)] : 0.0f;
        largest = std::max(largest, std::fabs(value));
        ASSERT_EQ(scaled.half[static_cast<size_t>(r * stride + i)],
                  F32ToF16(std::ldexp(value, -exponent)))
            << GetParam().name << ", row " << r << ", value " << i << ": "
            << value << " by 2^" << exponent;
      }
      if (largest == 0) continue;
      ASSERT_GE(std::ldexp(largest, -exponent), 0x1p14f);
      ASSERT_LT(std::ldexp(largest, -exponent), 0x1p15f);
    }
  }
};

TEST_P(CudaScaledHalfTest, ValuesAreRoundedOnceAtTheirRowsScale) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const int64_t blocks : {1, 3, 17, 300})
      ExpectRounded(3, blocks * GetParam().block_elements, 0);
  }
}

TEST_P(CudaScaledHalfTest, RowsMayLieAtAnyAddress) {
  for (const size_t shift : {1, 2, 4, 8, 33})
    ExpectRounded(5, 2 * GetParam().block_elements, shift);
}

INSTANTIATE_TEST_SUITE_P(Types, CudaScaledHalfTest,
                         testing::ValuesIn(AllDTypes().begin(),
                                           AllDTypes().end()),
                         [](const testing::TestParamInfo<DTypeInfo>& row) {
                           return std::string(row.param.name);
                         });

Scaled OfOneRow(const std::vector<float>& values) {
  return ToScaledHalf(
      {.type = DType::kF32,
       .data = reinterpret_cast<const std::byte*>(values.data()),
       .rows = 1,
       .cols = static_cast<int64_t>(values.size())});
}

TEST(CudaScaledHalfRangeTest, TheLargestAndTheSmallestFloatsAreKept) {
  const float largest = std::numeric_limits<float>::max();
  const Scaled large = OfOneRow({largest, -1e30f, 0, 0});
  EXPECT_EQ(large.exponents[0], 113);
  EXPECT_EQ(large.half[0], F32ToF16(0x1.fffffep14f));
  EXPECT_EQ(large.half[1], F32ToF16(std::ldexp(-1e30f, -113)));
  const Scaled small = OfOneRow({0x1p-149f, 0x1p-130f, 0, 0});
  EXPECT_EQ(small.exponents[0], -126);
  EXPECT_EQ(small.half[0], F32ToF16(0x1p-23f));
  EXPECT_EQ(small.half[1], F32ToF16(0x1p-4f));
}

TEST(CudaScaledHalfRangeTest, ARowOfZerosStaysOne) {
  const Scaled scaled = OfOneRow({0, -0.0f, 0, 0, 0});
  EXPECT_EQ(scaled.half, (std::vector<uint16_t>{0, 0x8000, 0, 0, 0, 0, 0, 0}));
}

TEST(CudaScaledHalfRangeTest, InfinitiesAndNaNsStayWhatTheyAre) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Scaled scaled =
      OfOneRow({1, -infinity, std::numeric_limits<float>::quiet_NaN(), 1e30f});
  EXPECT_EQ(scaled.exponents[0], 0);
  EXPECT_EQ(scaled.half[0], 0x3c00);
  EXPECT_EQ(scaled.half[1], 0xfc00);
  EXPECT_TRUE(std::isnan(F16ToF32(scaled.half[2])));
}

TEST(CudaScaledHalfRangeTest, ScalesAreUndoneByRowAndToken) {
  simt::ImmediateStream stream;
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    const int64_t rows = 200;
    const int64_t tokens = 3;
    const int64_t stride = 210;
    std::vector<int32_t> row_exponents;
    for (int r = 0; r < rows; ++r) row_exponents.push_back(r % 50 - 20);
    const std::vector<int32_t> token_exponents = {-90, 0, 80};
    std::vector<float> products(static_cast<size_t>(tokens * stride), 1.25f);
    ASSERT_TRUE(cuda::UndoScales(row_exponents.data(), token_exponents.data(),
                                 rows, tokens, products.data(), stride, &stream)
                    .ok());
    for (size_t t = 0; t < size_t{tokens}; ++t) {
      for (size_t r = 0; r < size_t{stride}; ++r) {
        const int exponent =
            r < size_t{rows} ? row_exponents[r] + token_exponents[t] : 0;
        ASSERT_EQ(products[t * size_t{stride} + r], std::ldexp(1.25f, exponent))
            << NameOf(order) << ", token " << t << ", row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace coldstream
