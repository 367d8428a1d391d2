// DeviceMatmul with the shim's GEMM: sweeps for few tokens, tiles for many.

#include "kernels/cuda/matmul.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/available_rows.h"
#include "tests/kernels/cuda/device_weights.h"
#include "tests/kernels/weight_rows.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"

namespace coldstream {
namespace {

std::vector<float> RandomTokens(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = normal(random);
  return x;
}

// A DeviceMatmul with all that it stands on.
class Fixture {
 public:
  explicit Fixture(const cuda::MatmulLimits& limits)
      : device_(CreateCpuDevice()),
        workspace_(*device_->Allocate(cuda::kGemmWorkspaceBytes, "workspace")),
        scratch_(*device_->Allocate(cuda::DeviceMatmul::ScratchBytes(limits),
                                    "scratch")),
        gemm_(*cuda::Gemm::Create(&stream_, workspace_.bytes())),
        matmul_(limits, scratch_.bytes(), gemm_.get(), &stream_) {}

  cuda::DeviceMatmul& operator*() { return matmul_; }

  std::vector<float> Product(const TensorView& weight,
                             const std::vector<float>& x) {
    const int64_t tokens = static_cast<int64_t>(x.size()) / weight.cols;
    std::vector<float> out(static_cast<size_t>(tokens * weight.rows),
                           std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(matmul_.SetInput(x.data(), tokens, weight.cols).ok());
    EXPECT_TRUE(matmul_.Run(weight, out.data(), weight.rows).ok());
    return out;
  }

 private:
  simt::ImmediateStream stream_;
  std::unique_ptr<Device> device_;
  DeviceMemory workspace_;
  DeviceMemory scratch_;
  std::unique_ptr<cuda::Gemm> gemm_;
  cuda::DeviceMatmul matmul_;
};

class CudaMatmulTest : public testing::TestWithParam<DTypeInfo> {
 protected:
  DType type() const { return GetParam().type; }
  int64_t block() const { return GetParam().block_elements; }

  // Compares a GEMM's result with the double product of exact weights and
  // activations. An F16 factor is off by 2^-11 of itself or by 2^-39 of the
  // largest of its row; the sum rounds once a step of eight chains, and then
  // theirs.
  void ExpectNearExact(Fixture& matmul, int64_t rows, int64_t k,
                       int64_t tokens) {
    WeightRows weights(type(), rows, k, static_cast<unsigned>(rows + k));
    const DeviceWeights device(weights, 0);
    const std::vector<float> w = weights.Values();
    const std::vector<float> x = RandomTokens(tokens * k, 11);
    const std::vector<float> out = matmul.Product(device.view(), x);
    const double sum_rounding =
        static_cast<double>(k / 8 + 8 + 2) * kFloatRounding;
    const bool half = type() != DType::kF32;
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t r = 0; r < rows; ++r) {
        double expected = 0;
        double magnitude = 0;
        double w_sum = 0, w_largest = 0, x_sum = 0, x_largest = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double a = w[static_cast<size_t>(r * k + i)];
          const double b = x[static_cast<size_t>(t * k + i)];
          expected += a * b;
          magnitude += std::fabs(a * b);
          w_sum += std::fabs(a);
          x_sum += std::fabs(b);
          w_largest = std::max(w_largest, std::fabs(a));
          x_largest = std::max(x_largest, std::fabs(b));
        }
        double bound = sum_rounding * magnitude;
        if (half) {
          bound += (2 * 0x1p-11 + 0x1p-22) * magnitude +
                   0x1p-39 * (w_largest * x_sum + x_largest * w_sum) +
                   sum_rounding * 0x1p-9 * magnitude;
        }
        ASSERT_NEAR(out[static_cast<size_t>(t * rows + r)], expected, bound)
            << GetParam().name << ", token " << t << " of " << tokens
            << ", row " << r << " of " << rows << ", k " << k;
      }
    }
  }
};

TEST_P(CudaMatmulTest, ManyTokensAreWithinTheRoundingOfF16) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    Fixture matmul({.tokens = 70, .k = 1280, .rows = 33});
    for (const int64_t tokens : {33, 70}) {
      ExpectNearExact(matmul, 33, 3 * block(), tokens);
      ExpectNearExact(matmul, 5, 1280, tokens);
    }
  }
}

TEST_P(CudaMatmulTest, TilesChangeNoBit) {
  const int64_t k = 2 * std::max<int64_t>(block(), 32);
  const int64_t rows = 200;
  WeightRows weights(type(), rows, k, 51);
  const DeviceWeights device(weights, 0);
  const std::vector<float> x = RandomTokens(40 * k, 52);
  Fixture whole({.tokens = 40, .k = k, .rows = rows});
  Fixture tiled({.tokens = 40, .k = k, .rows = rows, .tile_bytes = 1});
  EXPECT_EQ(whole.Product(device.view(), x), tiled.Product(device.view(), x));
}

TEST_P(CudaMatmulTest, WhereTheWeightsLieChangesNoBit) {
  const int64_t k = 2 * std::max<int64_t>(block(), 8);
  WeightRows weights(type(), 9, k, 53);
  for (const int64_t tokens : {12, 40}) {
    Fixture matmul({.tokens = tokens, .k = k, .rows = 9});
    const std::vector<float> x = RandomTokens(tokens * k, 54);
    const std::vector<float> expected =
        matmul.Product(DeviceWeights(weights, 0).view(), x);
    for (const size_t shift : {1, 2, 4, 32})
      EXPECT_EQ(matmul.Product(DeviceWeights(weights, shift).view(), x),
                expected)
          << GetParam().name << ", shift " << shift;
  }
}

TEST_P(CudaMatmulTest, SweepsOfSeveralTokensDoNotMixThem) {
  const int64_t k = 3 * std::max<int64_t>(block(), 32);
  const int64_t rows = 7;
  WeightRows weights(type(), rows, k, 55);
  const DeviceWeights device(weights, 0);
  Fixture matmul({.tokens = 32, .k = k, .rows = rows});
  const std::vector<float> x = RandomTokens(32 * k, 56);
  const std::vector<float> all = matmul.Product(device.view(), x);
  for (int64_t t = 0; t < 32; ++t) {
    const std::vector<float> alone = matmul.Product(
        device.view(),
        std::vector<float>(x.begin() + t * k, x.begin() + (t + 1) * k));
    ASSERT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + t * rows))
        << GetParam().name << ", token " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaMatmulTest,
                         testing::ValuesIn(AllDTypes().begin(),
                                           AllDTypes().end()),
                         [](const testing::TestParamInfo<DTypeInfo>& row) {
                           return std::string(row.param.name);
                         });

TEST(CudaMatmulInputTest, ANewInputReplacesAllFormsOfTheOldOne) {
  const int64_t k = 256;
  Fixture matmul({.tokens = 40, .k = k, .rows = 4});
  for (const DType type : {DType::kQ8_0, DType::kQ4_K, DType::kF16}) {
    WeightRows weights(type, 4, k, 57);
    const DeviceWeights device(weights, 0);
    for (const int64_t tokens : {2, 40}) {
      const std::vector<float> first = RandomTokens(tokens * k, 58);
      const std::vector<float> second = RandomTokens(tokens * k, 59);
      const std::vector<float> before = matmul.Product(device.view(), first);
      EXPECT_NE(matmul.Product(device.view(), second), before);
      EXPECT_EQ(matmul.Product(device.view(), first), before);
    }
  }
}

TEST(CudaMatmulInputTest, OutputRowsMayBeWiderThanTheWeight) {
  const int64_t k = 64;
  WeightRows weights(DType::kQ8_0, 3, k, 60);
  const DeviceWeights device(weights, 0);
  for (const int64_t tokens : {5, 40}) {
    Fixture matmul({.tokens = tokens, .k = k, .rows = 3});
    const std::vector<float> x = RandomTokens(tokens * k, 61);
    std::vector<float> out(static_cast<size_t>(tokens * 8), -1.0f);
    ASSERT_TRUE((*matmul).SetInput(x.data(), tokens, k).ok());
    ASSERT_TRUE((*matmul).Run(device.view(), out.data(), 8).ok());
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(out[i] == -1.0f, i % 8 >= 3) << i;
  }
}

TEST(CudaMatmulInputTest, ANonFiniteActivationShowsInItsTokenAndInNoOther) {
  const int64_t k = 256;
  Fixture matmul({.tokens = 40, .k = k, .rows = 5});
  for (const DType type : {DType::kQ4_K, DType::kBF16, DType::kF32}) {
    WeightRows weights(type, 5, k, 62);
    const DeviceWeights device(weights, 0);
    std::vector<float> x = RandomTokens(40 * k, 63);
    x[static_cast<size_t>(k + 3)] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> out = matmul.Product(device.view(), x);
    for (size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(std::isfinite(out[i]), i / 5 != 1)
          << InfoOf(type).name << " " << i;
  }
}

TEST(CudaMatmulInputTest, FewTokensNeedNeitherTilesNorGemm) {
  const cuda::MatmulLimits few = {.tokens = 32, .k = 4096, .rows = 4096};
  EXPECT_FALSE(cuda::DeviceMatmul::NeedsGemm(few));
  EXPECT_LT(cuda::DeviceMatmul::ScratchBytes(few), uint64_t{1} << 20);
  const cuda::MatmulLimits many = {.tokens = 33, .k = 4096, .rows = 4096};
  EXPECT_TRUE(cuda::DeviceMatmul::NeedsGemm(many));
  EXPECT_GT(cuda::DeviceMatmul::ScratchBytes(many), uint64_t{32} << 20);
}

}  // namespace
}  // namespace coldstream
