#include "kernels/cuda/dequantize.h"

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/device_weights.h"
#include "tests/kernels/weight_rows.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"

namespace coldstream {
namespace {

class CudaDequantizeTest : public testing::TestWithParam<DTypeInfo> {
 protected:
  // Compares bits: NaN and the sign of zero too.
  void ExpectExact(int64_t rows, int64_t cols, size_t shift) {
    WeightRows weights(GetParam().type, rows, cols,
                       static_cast<unsigned>(rows + cols));
    const DeviceWeights device(weights, shift);
    const std::vector<float> expected = weights.Values();
    std::vector<float> out(expected.size(), std::numeric_limits<float>::max());
    simt::ImmediateStream stream;
    ASSERT_TRUE(cuda::Dequantize(device.view(), out.data(), &stream).ok());
    for (size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(out[i]),
                std::bit_cast<uint32_t>(expected[i]))
          << GetParam().name << ", value " << i << " of " << rows << " x "
          << cols << ", shift " << shift << ": " << out[i] << ", expected "
          << expected[i];
  }
};

TEST_P(CudaDequantizeTest, ValuesAreThoseOfTheScalarRow) {
  const int64_t block = GetParam().block_elements;
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const int64_t blocks : {1, 2, 3, 5, 37})
      for (const int64_t rows : {1, 2, 9, 17})
        ExpectExact(rows, blocks * block, 0);
  }
}

TEST_P(CudaDequantizeTest, WeightsMayLieAtAnyAddress) {
  for (const size_t shift : {1, 2, 3, 4, 8, 12, 32})
    ExpectExact(5, 3 * GetParam().block_elements, shift);
}

INSTANTIATE_TEST_SUITE_P(Types, CudaDequantizeTest,
                         testing::ValuesIn(AllDTypes().begin(),
                                           AllDTypes().end()),
                         [](const testing::TestParamInfo<DTypeInfo>& row) {
                           return std::string(row.param.name);
                         });

}  // namespace
}  // namespace coldstream
