#include "kernels/cuda/matvec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/activations.h"
#include "kernels/ops.h"
#include "tests/kernels/available_rows.h"
#include "tests/kernels/cuda/device_weights.h"
#include "tests/kernels/weight_rows.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"

namespace coldstream {
namespace {

// Activations of several tokens in a type's format, at a multiple of 64 bytes.
class QuantizedTokens {
 public:
  QuantizedTokens(ActivationFormat format, const std::vector<float>& x,
                  int64_t k)
      : format_(format),
        k_(k),
        stride_(format == ActivationFormat::kF32
                    ? static_cast<uint64_t>(k) * sizeof(float)
                    : ActivationRowBytes(format, k)) {
    const Ops& scalar = **OpsFor(Isa::kScalar);
    const int64_t tokens = static_cast<int64_t>(x.size()) / k;
    bytes_.resize((static_cast<size_t>(tokens) * stride_ + 15) / 16);
    for (int64_t t = 0; t < tokens; ++t)
      scalar.quantize[static_cast<size_t>(format)](x.data() + t * k, k,
                                                   token(t));
  }

  std::byte* token(int64_t t) {
    return reinterpret_cast<std::byte*>(bytes_.data()) +
           static_cast<uint64_t>(t) * stride_;
  }
  uint64_t stride() const { return stride_; }

  // What number i of token t stands for.
  double value(int64_t t, int64_t i) {
    const std::byte* row = token(t);
    switch (format_) {
      case ActivationFormat::kF32:
        return reinterpret_cast<const float*>(row)[i];
      case ActivationFormat::kQ8_32:
        return double{ViewQ8_32(row, k_).scale[i / 32]} *
               ViewQ8_32(row, k_).q[i];
      case ActivationFormat::kQ8_256:
        return double{ViewQ8_256(row, k_).scale[i / 256]} *
               ViewQ8_256(row, k_).q[i];
    }
    return 0;
  }

 private:
  struct alignas(16) Vector {
    std::byte bytes[16];
  };
  ActivationFormat format_;
  int64_t k_;
  uint64_t stride_;
  std::vector<Vector> bytes_;
};

std::vector<float> RandomTokens(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = normal(random);
  return x;
}

class CudaMatvecTest : public testing::TestWithParam<DTypeInfo> {
 protected:
  DType type() const { return GetParam().type; }
  int64_t block() const { return GetParam().block_elements; }
  ActivationFormat format() const {
    return (**OpsFor(Isa::kScalar)).MatmulFor(type()).format;
  }

  // Roundings on the way of any term into a sum: those of a lane's chain (two
  // terms a part with minima; eight values a part of floats), the scales'
  // product and the conversion of the whole sum, five steps over the warp,
  // three over the warps.
  double Roundings(int64_t k) const {
    const bool floats = block() == 1;
    const int64_t parts = floats          ? (k + 7) / 8
                          : block() == 32 ? k / 16
                                          : k / 32;
    const int64_t lanes = std::min<int64_t>(128, (parts + 31) / 32 * 32);
    const int64_t chain = (parts + lanes - 1) / lanes * (floats ? 8 : 2);
    return static_cast<double>(chain + 2 + 5 + 3);
  }

  // out[t, r] for all tokens, in one call.
  std::vector<float> Product(const TensorView& weight, QuantizedTokens& x,
                             int64_t first, int64_t tokens) {
    std::vector<float> out(static_cast<size_t>(tokens * weight.rows),
                           std::numeric_limits<float>::quiet_NaN());
    simt::ImmediateStream stream;
    const Status status = cuda::Matvec({.weight = weight,
                                        .activations = x.token(first),
                                        .activation_stride = x.stride(),
                                        .tokens = tokens,
                                        .out = out.data(),
                                        .out_stride = weight.rows},
                                       &stream);
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }

  // Compares with the scalar row, which sums in double: its own rounding to
  // float is one more. A minimum counts apart from what it is subtracted from.
  void ExpectNearScalar(int64_t rows, int64_t k, int64_t tokens, size_t shift) {
    const Ops& scalar = **OpsFor(Isa::kScalar);
    WeightRows weights(type(), rows, k, static_cast<unsigned>(rows + k));
    const DeviceWeights device(weights, shift);
    const std::vector<float> w = weights.Values();
    const std::vector<float> scaled = weights.WithoutMinima().Values();
    QuantizedTokens x(format(), RandomTokens(tokens * k, 11), k);
    std::vector<float> expected(static_cast<size_t>(tokens * rows));
    scalar.MatmulFor(type()).rows({.weight = weights.view(),
                                   .activations = x.token(0),
                                   .activation_stride = x.stride(),
                                   .tokens = tokens,
                                   .out = expected.data(),
                                   .out_stride = rows},
                                  0, rows);
    const std::vector<float> out = Product(device.view(), x, 0, tokens);
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t r = 0; r < rows; ++r) {
        double magnitude = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double value = w[static_cast<size_t>(r * k + i)];
          const double part = scaled[static_cast<size_t>(r * k + i)];
          magnitude += (std::fabs(part) + std::fabs(value - part)) *
                       std::fabs(x.value(t, i));
        }
        const size_t at = static_cast<size_t>(t * rows + r);
        ASSERT_NEAR(out[at], expected[at],
                    (Roundings(k) + 1) * kFloatRounding * magnitude)
            << GetParam().name << ", token " << t << " of " << tokens
            << ", row " << r << " of " << rows << ", k " << k << ", shift "
            << shift << ", order " << NameOf(simt::GetLaneOrder());
      }
    }
  }
};

TEST_P(CudaMatvecTest, EveryProductIsWithinRoundingOfTheScalarRow) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const int64_t blocks : {1, 2, 3, 5, 9})
      for (const int64_t tokens : {1, 3, 8})
        ExpectNearScalar(7, blocks * block(), tokens, 0);
    ExpectNearScalar(3, 2560, 2, 0);
  }
}

TEST_P(CudaMatvecTest, AnyNumberOfRowsAndTokensIsComputed) {
  for (const int64_t rows : {1, 2, 3, 8, 17})
    for (int64_t tokens = 1; tokens <= cuda::kMatvecTokens; ++tokens)
      ExpectNearScalar(rows, 2 * block(), tokens, 0);
}

TEST_P(CudaMatvecTest, SeveralRoundsOfPartsAreAddedUp) {
  ExpectNearScalar(2, 33 * 256, 2, 0);
}

TEST_P(CudaMatvecTest, WhereTheWeightsLieChangesNoBit) {
  const int64_t k = 5 * std::max<int64_t>(block(), 8);
  WeightRows weights(type(), 9, k, 31);
  QuantizedTokens x(format(), RandomTokens(3 * k, 12), k);
  const std::vector<float> expected =
      Product(DeviceWeights(weights, 0).view(), x, 0, 3);
  for (const size_t shift : {1, 2, 3, 4, 8, 12, 16, 33}) {
    for (const std::byte garbage : {std::byte{0}, std::byte{0xff}}) {
      const DeviceWeights device(weights, shift, garbage);
      EXPECT_EQ(Product(device.view(), x, 0, 3), expected)
          << GetParam().name << ", shift " << shift;
    }
  }
}

TEST_P(CudaMatvecTest, ATokensSumsDoNotDependOnItsCompany) {
  const int64_t k = 7 * std::max<int64_t>(block(), 96);
  WeightRows weights(type(), 5, k, 21);
  const DeviceWeights device(weights, 0);
  const int64_t rows = 5;
  QuantizedTokens x(format(), RandomTokens(8 * k, 13), k);
  std::vector<float> alone;
  for (int64_t t = 0; t < 8; ++t) {
    const std::vector<float> one = Product(device.view(), x, t, 1);
    alone.insert(alone.end(), one.begin(), one.end());
  }
  for (int64_t tokens = 2; tokens <= 8; ++tokens) {
    const int64_t first = 8 - tokens;
    const std::vector<float> out = Product(device.view(), x, first, tokens);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), alone.begin() + first * rows,
                           [](float a, float b) {
                             return std::bit_cast<uint32_t>(a) ==
                                    std::bit_cast<uint32_t>(b);
                           }))
        << GetParam().name << ", " << tokens << " tokens";
  }
}

TEST_P(CudaMatvecTest, ANonFiniteActivationShowsInItsTokenAndInNoOther) {
  const int64_t k = 2 * std::max<int64_t>(block(), 32);
  WeightRows weights(type(), 5, k, 24);
  const DeviceWeights device(weights, 0);
  std::vector<float> tokens = RandomTokens(3 * k, 15);
  tokens[static_cast<size_t>(k + 3)] = std::numeric_limits<float>::infinity();
  tokens[static_cast<size_t>(k + 4)] = -std::numeric_limits<float>::infinity();
  QuantizedTokens x(format(), tokens, k);
  const std::vector<float> out = Product(device.view(), x, 0, 3);
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(std::isfinite(out[i]), i / 5 != 1) << GetParam().name << " " << i;
}

INSTANTIATE_TEST_SUITE_P(Types, CudaMatvecTest,
                         testing::ValuesIn(AllDTypes().begin(),
                                           AllDTypes().end()),
                         [](const testing::TestParamInfo<DTypeInfo>& row) {
                           return std::string(row.param.name);
                         });

TEST(CudaMatvecFloatsTest, RowsNeedNotBeWholeVectors) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t k : {1, 7, 9, 300}) {
      WeightRows weights(type, 4, k, 41);
      const DeviceWeights device(weights, 0);
      const std::vector<float> x = RandomTokens(k, 42);
      QuantizedTokens tokens(ActivationFormat::kF32, x, k);
      std::vector<float> out(4);
      simt::ImmediateStream stream;
      ASSERT_TRUE(cuda::Matvec({.weight = device.view(),
                                .activations = tokens.token(0),
                                .activation_stride = tokens.stride(),
                                .tokens = 1,
                                .out = out.data(),
                                .out_stride = 4},
                               &stream)
                      .ok());
      const std::vector<float> w = weights.Values();
      for (size_t r = 0; r < 4; ++r) {
        double expected = 0;
        double magnitude = 0;
        for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
          const double product = double{w[r * size_t(k) + i]} * x[i];
          expected += product;
          magnitude += std::fabs(product);
        }
        EXPECT_NEAR(out[r], expected, (8 + 10) * kFloatRounding * magnitude)
            << InfoOf(type).name << ", k " << k;
      }
    }
  }
}

}  // namespace
}  // namespace coldstream
