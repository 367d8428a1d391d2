#include "kernels/matmul.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/activations.h"
#if defined(__x86_64__)
#include "kernels/cpu/avx512/register.h"
#endif
#include "tests/kernels/available_rows.h"
#include "tests/kernels/weight_rows.h"

namespace coldstream {
namespace {

std::vector<float> RandomActivations(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = normal(random);
  return x;
}

// The rows a product reads, in exact-size storage, and the values they stand
// for.
struct QuantizedRows {
  std::vector<std::byte> bytes;
  uint64_t stride = 0;
  std::vector<double> values;  // [tokens, k]
};

QuantizedRows Quantize(const Ops& ops, ActivationFormat format,
                       const std::vector<float>& x, int64_t k) {
  QuantizedRows rows;
  rows.stride = ActivationRowBytes(format, k);
  const int64_t tokens = static_cast<int64_t>(x.size()) / k;
  rows.bytes.resize(static_cast<size_t>(tokens) * rows.stride);
  for (int64_t t = 0; t < tokens; ++t) {
    std::byte* row = rows.bytes.data() + static_cast<uint64_t>(t) * rows.stride;
    ops.quantize[static_cast<size_t>(format)](x.data() + t * k, k, row);
    for (int64_t i = 0; i < k; ++i) {
      if (format == ActivationFormat::kF32) {
        rows.values.push_back(x[static_cast<size_t>(t * k + i)]);
      } else if (format == ActivationFormat::kQ8_32) {
        const Q8_32Row view = ViewQ8_32(row, k);
        rows.values.push_back(double{view.scale[i / 32]} * view.q[i]);
      } else {
        const Q8_256Row view = ViewQ8_256(row, k);
        rows.values.push_back(double{view.scale[i / 256]} * view.q[i]);
      }
    }
  }
  return rows;
}

MatmulArgs ArgsFor(const TensorView& weight, const QuantizedRows& x,
                   int64_t tokens, std::vector<float>* out) {
  out->assign(static_cast<size_t>(tokens * weight.rows),
              std::numeric_limits<float>::quiet_NaN());
  return {.weight = weight,
          .activations = x.bytes.data(),
          .activation_stride = x.stride,
          .tokens = tokens,
          .out = out->data(),
          .out_stride = weight.rows};
}

// Roundings on the way of any term into the sum: the chain over blocks (or
// groups of 16 floats), the scales, the conversion and the last reduction.
double Roundings(ActivationFormat format, int64_t k) {
  const int64_t chain = format == ActivationFormat::kF32     ? k / 16 + 1
                        : format == ActivationFormat::kQ8_32 ? 2 * k / 32
                                                             : k / 256;
  return static_cast<double>(chain + 6);
}

// Compares with the double product of exact weights and quantised activations.
// The bound is roundings times the sum of the magnitudes added up, where a
// minimum counts apart from what it is subtracted from.
void ExpectNearReference(const Ops& ops, DType type, int64_t rows, int64_t k,
                         int64_t tokens, size_t shift) {
  const MatmulKernel& kernel = ops.MatmulFor(type);
  WeightRows weights(type, rows, k, static_cast<unsigned>(rows + k), shift);
  const std::vector<float> w = weights.Values();
  const std::vector<float> scaled = weights.WithoutMinima().Values();
  const QuantizedRows x =
      Quantize(ops, kernel.format, RandomActivations(tokens * k, 11), k);
  std::vector<float> out;
  const MatmulArgs args = ArgsFor(weights.view(), x, tokens, &out);
  kernel.rows(args, 0, rows);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t r = 0; r < rows; ++r) {
      double expected = 0;
      double magnitude = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double value = w[static_cast<size_t>(r * k + i)];
        const double part = scaled[static_cast<size_t>(r * k + i)];
        const double y = x.values[static_cast<size_t>(t * k + i)];
        expected += value * y;
        magnitude += (std::fabs(part) + std::fabs(value - part)) * std::fabs(y);
      }
      const double bound =
          Roundings(kernel.format, k) * kFloatRounding * magnitude;
      ASSERT_NEAR(out[static_cast<size_t>(t * rows + r)], expected, bound)
          << InfoOf(type).name << ", " << ops.name << ", token " << t
          << ", row " << r << " of " << rows << ", k " << k;
    }
  }
}

class MatmulTest : public testing::TestWithParam<DTypeInfo> {
 protected:
  DType type() const { return GetParam().type; }
  int64_t block() const { return GetParam().block_elements; }
};

TEST_P(MatmulTest, EveryRowIsWithinRoundingOfTheExactProduct) {
  for (const Ops* ops : AvailableRows()) {
    for (const int64_t blocks : {1, 2, 3, 5, 8, 9, 22})
      ExpectNearReference(*ops, type(), 19, blocks * block(), 3, 0);
    ExpectNearReference(*ops, type(), 33, 1024, 21, 0);
  }
}

TEST_P(MatmulTest, AnyNumberOfRowsIsComputed) {
  for (const Ops* ops : AvailableRows())
    for (const int64_t rows : {1, 2, 15, 16, 17, 31, 47})
      ExpectNearReference(*ops, type(), rows, 3 * block(), 2, 0);
}

TEST_P(MatmulTest, WeightsMayLieAtAnyAddress) {
  for (const Ops* ops : AvailableRows())
    for (const size_t shift : {1, 2, 3, 7, 33})
      ExpectNearReference(*ops, type(), 18, 2 * block(), 2, shift);
}

TEST_P(MatmulTest, ATokensSumsDoNotDependOnItsCompany) {
  // Blocks are taken eight at a time: eight, and some left.
  const int64_t k = 11 * std::max<int64_t>(block(), 96);
  const int64_t rows = 37;
  const int64_t tokens = 131;
  for (const Ops* ops : AvailableRows()) {
    const MatmulKernel& kernel = ops->MatmulFor(type());
    WeightRows weights(type(), rows, k, 21);
    const QuantizedRows x =
        Quantize(*ops, kernel.format, RandomActivations(tokens * k, 12), k);
    std::vector<float> all;
    kernel.rows(ArgsFor(weights.view(), x, tokens, &all), 0, rows);
    for (const int64_t count : {1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 64, 100}) {
      for (const int64_t first : {int64_t{0}, tokens - count}) {
        std::vector<float> out;
        MatmulArgs args = ArgsFor(weights.view(), x, count, &out);
        args.activations += static_cast<uint64_t>(first) * x.stride;
        kernel.rows(args, 0, rows);
        ASSERT_EQ(std::memcmp(out.data(), all.data() + first * rows,
                              out.size() * sizeof(float)),
                  0)
            << ops->name << ", tokens " << first << " + " << count;
      }
    }
  }
}

TEST_P(MatmulTest, AnyRangeOfRowsGivesTheSameBitsAndTouchesNoOther) {
  const int64_t k = 3 * block();
  const int64_t rows = 53;
  for (const Ops* ops : AvailableRows()) {
    const MatmulKernel& kernel = ops->MatmulFor(type());
    WeightRows weights(type(), rows, k, 22);
    for (const int64_t tokens : {1, 18}) {
      const QuantizedRows x =
          Quantize(*ops, kernel.format, RandomActivations(tokens * k, 13), k);
      std::vector<float> all;
      kernel.rows(ArgsFor(weights.view(), x, tokens, &all), 0, rows);
      std::vector<float> pieces;
      const MatmulArgs args = ArgsFor(weights.view(), x, tokens, &pieces);
      int64_t begin = 0;
      for (const int64_t end : {1, 1, 4, 20, 36, 53}) {
        kernel.rows(args, begin, end);
        for (int64_t t = 0; t < tokens; ++t) {
          for (int64_t r = end; r < rows; ++r)
            ASSERT_TRUE(std::isnan(pieces[static_cast<size_t>(t * rows + r)]));
        }
        begin = end;
      }
      ASSERT_EQ(
          std::memcmp(pieces.data(), all.data(), all.size() * sizeof(float)), 0)
          << ops->name << ", " << tokens << " tokens";
    }
  }
}

TEST_P(MatmulTest, ThreadsDoNotChangeAnyBit) {
  const int64_t k = 4 * std::max<int64_t>(block(), 64);
  const int64_t rows = 200;
  const int64_t tokens = 5;
  const std::vector<float> x = RandomActivations(tokens * k, 14);
  WeightRows weights(type(), rows, k, 23);
  for (const Ops* ops : AvailableRows()) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 4}) {
      Parallel parallel(threads);
      StatusOr<Activations> activations = Activations::Create(tokens, k);
      ASSERT_TRUE(activations.ok());
      activations->Set(x.data(), tokens, k, k);
      results.emplace_back(static_cast<size_t>(tokens * rows));
      Matmul(*ops, parallel, weights.view(), *activations,
             results.back().data(), rows);
    }
    EXPECT_EQ(results[0], results[1]) << ops->name;
    EXPECT_EQ(results[0], results[2]) << ops->name;
  }
}

TEST_P(MatmulTest, ANonFiniteActivationShowsInItsTokenAndInNoOther) {
  const int64_t k = 2 * std::max<int64_t>(block(), 32);
  for (const Ops* ops : AvailableRows()) {
    const MatmulKernel& kernel = ops->MatmulFor(type());
    WeightRows weights(type(), 5, k, 24);
    std::vector<float> x = RandomActivations(3 * k, 15);
    x[static_cast<size_t>(k + 3)] = std::numeric_limits<float>::quiet_NaN();
    const QuantizedRows rows = Quantize(*ops, kernel.format, x, k);
    std::vector<float> out;
    kernel.rows(ArgsFor(weights.view(), rows, 3, &out), 0, 5);
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(std::isfinite(out[i]), i / 5 != 1) << ops->name << " " << i;
  }
}

#if defined(__x86_64__)
TEST_P(MatmulTest, Avx512WithAndWithoutVnniGiveTheSameBits) {
  const StatusOr<const Ops*> best = OpsFor(Isa::kAvx512);
  if (!best.ok()) GTEST_SKIP() << best.status();
  Ops plain = **best;
  plain.name = "avx512-plain";
  RegisterAvx512Matmul(&plain);
  ExpectNearReference(plain, type(), 19, 5 * block(), 3, 1);
  const MatmulKernel& kernel = plain.MatmulFor(type());
  const int64_t k = 9 * block();
  WeightRows weights(type(), 37, k, 25);
  const QuantizedRows x =
      Quantize(plain, kernel.format, RandomActivations(11 * k, 16), k);
  std::vector<float> expected;
  std::vector<float> out;
  kernel.rows(ArgsFor(weights.view(), x, 11, &expected), 0, 37);
  (*best)->MatmulFor(type()).rows(ArgsFor(weights.view(), x, 11, &out), 0, 37);
  EXPECT_EQ(out, expected);
}
#endif

INSTANTIATE_TEST_SUITE_P(Types, MatmulTest,
                         testing::ValuesIn(AllDTypes().begin(),
                                           AllDTypes().end()),
                         [](const testing::TestParamInfo<DTypeInfo>& row) {
                           return std::string(row.param.name);
                         });

// --- Activations -------------------------------------------------------------

TEST(ActivationsTest, StridedRowsAndRepeatedSetsAreHonoured) {
  const Ops& ops = **OpsFor(Isa::kScalar);
  Parallel parallel(2);
  StatusOr<Activations> activations = Activations::Create(4, 512);
  ASSERT_TRUE(activations.ok());
  WeightRows weights(DType::kQ4_K, 3, 256, 31);
  const std::vector<float> x = RandomActivations(4 * 300, 32);
  std::vector<float> strided(4 * 3);
  activations->Set(x.data(), 1, 512, 512);
  activations->Set(x.data(), 4, 256, 300);
  Matmul(ops, parallel, weights.view(), *activations, strided.data(), 3);
  for (size_t t = 0; t < 4; ++t) {
    std::vector<float> alone(3);
    activations->Set(x.data() + 300 * t, 1, 256, 256);
    Matmul(ops, parallel, weights.view(), *activations, alone.data(), 3);
    for (size_t r = 0; r < 3; ++r) EXPECT_EQ(alone[r], strided[3 * t + r]);
  }
}

TEST(ActivationsTest, OutputRowsMayBeWiderThanTheWeight) {
  const Ops& ops = **OpsFor(Isa::kScalar);
  Parallel parallel(1);
  StatusOr<Activations> activations = Activations::Create(2, 64);
  ASSERT_TRUE(activations.ok());
  const std::vector<float> x = RandomActivations(2 * 64, 34);
  activations->Set(x.data(), 2, 64, 64);
  WeightRows weights(DType::kQ8_0, 3, 64, 35);
  std::vector<float> out(2 * 8, -1.0f);
  Matmul(ops, parallel, weights.view(), *activations, out.data(), 8);
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i] == -1.0f, i % 8 >= 3) << i;
}

}  // namespace
}  // namespace coldstream
