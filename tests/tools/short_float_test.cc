#include "tools/short_float.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace coldstream {
namespace {

TEST(ShortFloatTest, HasTheFewestDigitsInJson) {
  EXPECT_EQ(nlohmann::json(ShortDouble(0.1f)).dump(), "0.1");
  EXPECT_EQ(nlohmann::json(ShortDouble(-1.25f)).dump(), "-1.25");
  EXPECT_EQ(nlohmann::json(ShortDouble(16777216.0f)).dump(), "16777216.0");
}

TEST(ShortFloatTest, ReadsBackAsTheSameFloat) {
  std::mt19937 random(3);
  for (int i = 0; i < 100000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isfinite(value)) continue;
    const double parsed =
        nlohmann::json::parse(nlohmann::json(ShortDouble(value)).dump());
    ASSERT_EQ(static_cast<float>(parsed), value);
  }
}

TEST(ShortFloatTest, KeepsWhatIsNotFinite) {
  EXPECT_TRUE(std::isnan(ShortDouble(std::nanf(""))));
  EXPECT_EQ(ShortDouble(-std::numeric_limits<float>::infinity()),
            -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace coldstream
