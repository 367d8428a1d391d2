#include "tools/embeddings_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "tests/support/same_bits.h"

namespace coldstream {
namespace {

using Json = nlohmann::json;

// Random bits that are finite floats, and the ends of their range.
std::vector<float> Floats() {
  std::vector<float> values = {0.0f,
                               -0.0f,
                               1,
                               -1,
                               16777216,
                               1e30f,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::min(),
                               std::numeric_limits<float>::denorm_min()};
  std::mt19937 random(4);
  while (values.size() < 3000) {
    const auto bits = static_cast<uint32_t>(random());
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

TEST(EmbeddingsTextTest, NumbersReadBackAsTheSameFloats) {
  const std::vector<float> values = Floats();
  const Json read = Json::parse(
      EmbeddingsText({&values, 1}, EmbeddingFormat::kFloat))["embedding"];
  std::vector<float> back;
  for (const Json& number : read) {
    EXPECT_TRUE(number.is_number_float()) << number;
    back.push_back(static_cast<float>(number.get<double>()));
  }
  EXPECT_TRUE(SameBits(back, values));
}

TEST(EmbeddingsTextTest, Base64HoldsTheBytesOfTheFloats) {
  const std::vector<float> values = Floats();
  const Json read = Json::parse(
      EmbeddingsText({&values, 1}, EmbeddingFormat::kBase64))["embedding"];
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(read.get<std::string>(), &bytes));
  std::vector<float> back(bytes.size() / 4);
  for (size_t i = 0; i < back.size(); ++i) {
    uint32_t bits = 0;
    for (size_t b = 4; b-- > 0;)
      bits = bits << 8 | static_cast<unsigned char>(bytes[4 * i + b]);
    std::memcpy(&back[i], &bits, sizeof(bits));
  }
  EXPECT_TRUE(SameBits(back, values));
}

TEST(EmbeddingsTextTest, EachVectorHasItsIndex) {
  const std::vector<std::vector<float>> two = {{1}, {2.5f}};
  EXPECT_EQ(EmbeddingsText(two, EmbeddingFormat::kFloat),
            R"({"object":"embedding","index":0,"embedding":[1.0]},)"
            R"({"object":"embedding","index":1,"embedding":[2.5]})");
}

}  // namespace
}  // namespace coldstream
