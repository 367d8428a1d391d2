#include "tools/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

auto IsRefused(const std::string& why) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why));
}

TEST(StrictJsonTest, ReadsWhatTheLibraryReads) {
  for (const char* text :
       {R"({"a": [1, -2, 3.5, "x\u00e9\n", true, false, null, {}, []]})", "7",
        "\"s\"", "[[[]]]", R"({"a":{"b":{"c":[{}]}}})", "18446744073709551615",
        "-9223372036854775808", "1e3"}) {
    const auto value = ParseStrictJson(text);
    ASSERT_THAT(value, IsOk()) << text;
    EXPECT_EQ(*value, Json::parse(text)) << text;
  }
}

TEST(StrictJsonTest, AnErrorSaysTheColumn) {
  EXPECT_THAT(ParseStrictJson("{\"a\": nul}"), IsRefused("column 10"));
  EXPECT_THAT(ParseStrictJson(""), IsRefused("column 1"));
  EXPECT_THAT(ParseStrictJson("{\"a\": 1"), IsRefused("unexpected end"));
  EXPECT_THAT(ParseStrictJson("{} {}"), IsRefused("column 4"));
}

TEST(StrictJsonTest, BytesThatAreNotUtf8AreNamedWithTheirColumn) {
  EXPECT_THAT(ParseStrictJson("{\"a\": \"\xFF\"}"),
              IsRefused("column 8: expected UTF-8, got the byte 0xFF"));
  // A surrogate by itself is no character, written out or escaped.
  EXPECT_THAT(ParseStrictJson("\"\xED\xA0\x80\""), IsRefused("0xED"));
  EXPECT_THAT(ParseStrictJson("\"\\ud800\""), IsRefused("column"));
}

TEST(StrictJsonTest, NestingIsBounded) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_THAT(ParseStrictJson(nested(kMostJsonDepth)), IsOk());
  EXPECT_THAT(ParseStrictJson(nested(kMostJsonDepth + 1)),
              IsRefused("32 levels"));
  EXPECT_THAT(ParseStrictJson(std::string(4 << 20, '[')),
              IsRefused("32 levels"));
  std::string objects;
  for (int i = 0; i < 1000000; ++i) objects += "{\"a\":";
  EXPECT_THAT(ParseStrictJson(objects), IsRefused("32 levels"));
}

TEST(StrictJsonTest, AMemberThatIsThereTwiceIsRefused) {
  EXPECT_THAT(ParseStrictJson(R"({"a": 1, "b": 2, "a": 1})"),
              IsRefused("\"a\" is there twice"));
  EXPECT_THAT(ParseStrictJson(R"([{"a": 1}, {"a": {"a": 2}}])"), IsOk());
}

TEST(StrictJsonTest, MessagesAreOneShortLine) {
  const std::string bad = "{\"" + std::string(1000, 'k') + "\n\": 1}";
  const auto value = ParseStrictJson(bad);
  ASSERT_THAT(value, Not(IsOk()));
  EXPECT_LT(MessageOf(value.status()).size(), 300u);
  EXPECT_EQ(MessageOf(value.status()).find('\n'), std::string::npos);
}

TEST(StrictJsonTest, RandomBytesNeverThrow) {
  std::mt19937 random(1);
  const std::string alphabet = "{}[]:,\"\\u0e1-+.tfn \xC3\xA9\xFF";
  for (int run = 0; run < 20000; ++run) {
    std::string text(random() % 24, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    const auto value = ParseStrictJson(text);
    EXPECT_TRUE(!value.ok() || Json::accept(text)) << text;
  }
}

TEST(StrictJsonTest, ValuesAreDescribedInAFewWords) {
  EXPECT_EQ(DescribeJson(nullptr), "null");
  EXPECT_EQ(DescribeJson(0.5), "0.5");
  EXPECT_EQ(DescribeJson(-3), "-3");
  EXPECT_EQ(DescribeJson("a\nb"), "\"a\\nb\"");
  EXPECT_EQ(DescribeJson(Json::array()), "an empty list");
  EXPECT_EQ(DescribeJson(Json::array({1})), "a list");
  EXPECT_EQ(DescribeJson(Json::object()), "an object");
  EXPECT_LT(DescribeJson(std::string(1000, 'x')).size(), 70u);
}

}  // namespace
}  // namespace coldstream
