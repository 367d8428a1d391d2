#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/activations.h"
#include "tests/kernels/available_rows.h"

namespace coldstream {
namespace {

constexpr ActivationFormat kFormats[] = {ActivationFormat::kQ8_32,
                                         ActivationFormat::kQ8_256};

int64_t BlockOf(ActivationFormat format) {
  return format == ActivationFormat::kQ8_32 ? 32 : 256;
}

std::vector<float> RandomValues(size_t n, float magnitude, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, magnitude);
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

std::vector<std::byte> Quantize(const Ops& ops, ActivationFormat format,
                                const std::vector<float>& x) {
  const int64_t k = static_cast<int64_t>(x.size());
  std::vector<std::byte> row(ActivationRowBytes(format, k));
  ops.quantize[static_cast<size_t>(format)](x.data(), k, row.data());
  return row;
}

const float* ScalesOf(ActivationFormat format,
                      const std::vector<std::byte>& row, size_t k) {
  const int64_t n = static_cast<int64_t>(k);
  return format == ActivationFormat::kQ8_32 ? ViewQ8_32(row.data(), n).scale
                                            : ViewQ8_256(row.data(), n).scale;
}

TEST(QuantizeTest, RowBytesAreAnOddNumberOfCacheLinesAndHoldTheLayout) {
  for (const ActivationFormat format : kFormats) {
    for (const int64_t k : {256, 512, 2048, 4096, 5632, 14336}) {
      const uint64_t bytes = ActivationRowBytes(format, k);
      EXPECT_EQ(bytes % 128, 64u);
      const uint64_t n = static_cast<uint64_t>(k);
      EXPECT_GE(bytes, format == ActivationFormat::kQ8_32
                           ? n + 3 * n / 8
                           : n + n / 8 + n / 16 + n / 64);
    }
  }
}

TEST(QuantizeTest, ValuesAreWithinHalfAStep) {
  for (const Ops* ops : AvailableRows()) {
    for (const ActivationFormat format : kFormats) {
      for (const float magnitude : {1e-20f, 1e-3f, 1.0f, 1e6f, 1e37f}) {
        const std::vector<float> x = RandomValues(1024, magnitude, 3);
        const std::vector<std::byte> row = Quantize(*ops, format, x);
        const float* scale = ScalesOf(format, row, x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          const double step = scale[i / static_cast<size_t>(BlockOf(format))];
          const double value = step * static_cast<int8_t>(row[i]);
          // Half a step, and the rounding of the scale and of 127 / largest.
          ASSERT_LE(std::fabs(value - double{x[i]}),
                    step * (0.5 + 127 * 4 * kFloatRounding))
              << ops->name << ", index " << i;
        }
      }
    }
  }
}

TEST(QuantizeTest, SumsAreTheSumsOfTheNumbers) {
  for (const Ops* ops : AvailableRows()) {
    const int64_t k = 1536;
    const std::vector<float> x = RandomValues(static_cast<size_t>(k), 1, 4);
    const auto row32 = Quantize(*ops, ActivationFormat::kQ8_32, x);
    const auto row256 = Quantize(*ops, ActivationFormat::kQ8_256, x);
    const Q8_32Row a = ViewQ8_32(row32.data(), k);
    const Q8_256Row b = ViewQ8_256(row256.data(), k);
    for (int64_t g = 0; g < k / 16; ++g) {
      int sum = 0;
      for (int64_t i = 0; i < 16; ++i) sum += b.q[16 * g + i];
      ASSERT_EQ(b.sum16[g], sum) << ops->name << ", group " << g;
    }
    for (int64_t g = 0; g < k / 32; ++g) {
      ASSERT_EQ(b.sum32[g], b.sum16[2 * g] + b.sum16[2 * g + 1]);
      int sum = 0;
      for (int64_t i = 0; i < 32; ++i) sum += a.q[32 * g + i];
      ASSERT_EQ(a.sum[g], sum) << ops->name << ", group " << g;
      ASSERT_EQ(a.scaled_sum[g], a.scale[g] * static_cast<float>(sum));
    }
  }
}

TEST(QuantizeTest, AllRowsOfTheTableMakeTheSameBytes) {
  const Ops& scalar = **OpsFor(Isa::kScalar);
  for (const Ops* ops : AvailableRows()) {
    for (const ActivationFormat format : kFormats) {
      for (unsigned seed = 0; seed < 20; ++seed) {
        // Whole steps and halves of them: ties must go the same way.
        std::vector<float> x =
            RandomValues(static_cast<size_t>(256 * (1 + seed % 5)), 30, seed);
        for (size_t i = 0; i < x.size(); i += 2)
          x[i] = std::round(2 * x[i]) / 2;
        for (size_t i = 0; i < x.size(); i += 64) x[i] = 127;
        ASSERT_EQ(Quantize(*ops, format, x), Quantize(scalar, format, x))
            << ops->name << ", seed " << seed;
      }
    }
  }
}

TEST(QuantizeTest, ZerosAndTheTinyBecomeZero) {
  for (const Ops* ops : AvailableRows()) {
    for (const ActivationFormat format : kFormats) {
      for (const float value : {0.0f, -0.0f, 0x1p-140f, -0x1p-130f}) {
        const std::vector<float> x(512, value);
        const std::vector<std::byte> row = Quantize(*ops, format, x);
        EXPECT_EQ(ScalesOf(format, row, x.size())[0], 0) << ops->name;
        for (size_t i = 0; i < x.size(); ++i)
          ASSERT_EQ(row[i], std::byte{0}) << ops->name;
      }
    }
  }
}

TEST(QuantizeTest, ANonFiniteValueMakesItsBlockNaNAndNoOther) {
  for (const Ops* ops : AvailableRows()) {
    for (const ActivationFormat format : kFormats) {
      for (const float bad : {std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN(),
                              -std::numeric_limits<float>::quiet_NaN()}) {
        std::vector<float> x = RandomValues(768, 1, 9);
        x[300] = bad;
        const std::vector<std::byte> row = Quantize(*ops, format, x);
        const float* scale = ScalesOf(format, row, x.size());
        const int64_t block = BlockOf(format);
        for (int64_t b = 0; b < 768 / block; ++b) {
          EXPECT_EQ(std::isnan(scale[b]), b == 300 / block)
              << ops->name << ", block " << b;
        }
        for (int64_t i = 300 / block * block; i < (300 / block + 1) * block;
             ++i)
          ASSERT_EQ(row[static_cast<size_t>(i)], std::byte{0}) << ops->name;
      }
    }
  }
}

}  // namespace
}  // namespace coldstream
