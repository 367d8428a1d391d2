#include "runtime/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Rows = std::vector<std::vector<float>>;

// Of a text of these rows, of which it gets those that it asks for.
std::vector<float> Pooled(const Rows& rows, Pooling pooling,
                          VectorLength length) {
  HiddenPool pool({.pooling = pooling, .length = length}, std::ssize(rows));
  for (int64_t i = pool.first(); i < pool.end(); ++i) {
    EXPECT_FALSE(pool.complete());
    pool.Add(rows[static_cast<size_t>(i)]);
  }
  EXPECT_TRUE(pool.complete());
  return pool.Take();
}

Rows RandomRows(size_t count, size_t width, std::mt19937* random) {
  std::normal_distribution<float> values(0, 3);
  Rows rows(count, std::vector<float>(width));
  for (std::vector<float>& row : rows)
    for (float& value : row) value = values(*random);
  return rows;
}

TEST(PoolingTest, LastAndClsAreOneTokensStateAsItIs) {
  const Rows rows = {{1, 2}, {3, 4}, {5.25f, -6}};
  EXPECT_THAT(Pooled(rows, Pooling::kLast, VectorLength::kAsItIs),
              ElementsAre(5.25f, -6));
  EXPECT_THAT(Pooled(rows, Pooling::kCls, VectorLength::kAsItIs),
              ElementsAre(1, 2));
  EXPECT_THAT(Pooled(rows, Pooling::kMean, VectorLength::kAsItIs),
              ElementsAre(3.08333333f, 0));
}

// n additions in double are off by (n - 1) 2^-53 of the sum of magnitudes at
// most, the division and the float by half a unit of their own last place.
TEST(PoolingTest, AMeanIsOffByNoMoreThanItsRoundings) {
  std::mt19937 random(3);
  for (const size_t count : {1u, 2u, 17u, 1000u}) {
    const Rows rows = RandomRows(count, 24, &random);
    const auto mean = Pooled(rows, Pooling::kMean, VectorLength::kAsItIs);
    for (size_t i = 0; i < mean.size(); ++i) {
      long double sum = 0, magnitudes = 0;
      for (const std::vector<float>& row : rows) {
        sum += row[i];
        magnitudes += std::fabs(row[i]);
      }
      const auto n = static_cast<long double>(count);
      const long double bound =
          (n - 1) * std::ldexp(magnitudes / n, -53) +
          std::fabs(sum / n) * (std::ldexp(1.0L, -24) + std::ldexp(1.0L, -52));
      EXPECT_LE(std::fabs(mean[i] - sum / n), bound) << count << ", " << i;
    }
  }
}

// Each value is off by half a unit of its last place, and so is the length.
TEST(PoolingTest, AVectorIsOfLengthOneAndOfTheSameDirection) {
  std::mt19937 random(5);
  const Rows rows = RandomRows(9, 300, &random);
  for (const Pooling pooling :
       {Pooling::kMean, Pooling::kLast, Pooling::kCls}) {
    const auto as_it_is = Pooled(rows, pooling, VectorLength::kAsItIs);
    const auto one = Pooled(rows, pooling, VectorLength::kOne);
    double squares = 0, length = 0;
    for (size_t i = 0; i < one.size(); ++i) {
      squares += static_cast<double>(one[i]) * static_cast<double>(one[i]);
      length +=
          static_cast<double>(as_it_is[i]) * static_cast<double>(as_it_is[i]);
    }
    EXPECT_NEAR(std::sqrt(squares), 1, std::ldexp(1.0, -24) * (1 + 1e-6));
    length = std::sqrt(length);
    // as_it_is and its length are rounded too.
    for (size_t i = 0; i < one.size(); ++i) {
      const double expected = static_cast<double>(as_it_is[i]) / length;
      EXPECT_NEAR(static_cast<double>(one[i]), expected,
                  std::fabs(expected) * std::ldexp(3.0, -24) * (1 + 1e-6));
    }
  }
}

TEST(PoolingTest, ZerosStayZerosAndLargeValuesDoNotOverflow) {
  EXPECT_THAT(Pooled({{0, 0}, {0, 0}}, Pooling::kMean, VectorLength::kOne),
              Each(0));
  const float most = std::numeric_limits<float>::max();
  EXPECT_THAT(Pooled({{most, most}, {most, most}}, Pooling::kMean,
                     VectorLength::kAsItIs),
              Each(most));
  EXPECT_THAT(
      Pooled({{most, 0}, {most, 0}}, Pooling::kMean, VectorLength::kOne),
      ElementsAre(1, 0));
}

TEST(PoolingTest, NamesAreReadBackAndNothingElse) {
  for (const Pooling pooling :
       {Pooling::kMean, Pooling::kLast, Pooling::kCls}) {
    const auto read = ParsePooling(PoolingName(pooling));
    ASSERT_THAT(read.status(), IsOk());
    EXPECT_EQ(*read, pooling);
  }
  EXPECT_THAT(ParsePooling("max").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("mean, last or cls, got \"max\"")));
}

TEST(PoolingTest, AModelsFileSaysWhichAndElseItIsTheMean) {
  const auto of = [](MetadataValue type) {
    Metadata metadata;
    metadata.Insert("general.architecture", std::string("qwen2"));
    metadata.Insert("qwen2.pooling_type", std::move(type));
    return DefaultPooling(metadata);
  };
  EXPECT_EQ(*of(int64_t{1}), Pooling::kMean);
  EXPECT_EQ(*of(int64_t{2}), Pooling::kCls);
  EXPECT_EQ(*of(int64_t{3}), Pooling::kLast);
  for (const int64_t other : {0, 4, -1}) {
    EXPECT_THAT(of(other).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("qwen2.pooling_type"),
                               HasSubstr("mean, last or cls"))));
  }
  EXPECT_THAT(of(std::string("mean")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("qwen2.pooling_type")));
  Metadata silent;
  silent.Insert("general.architecture", std::string("qwen2"));
  EXPECT_EQ(*DefaultPooling(silent), Pooling::kMean);
}

}  // namespace
}  // namespace coldstream
