#include "io/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StringArray Words(std::initializer_list<std::string_view> words) {
  StringArray array;
  for (const std::string_view word : words) array.Append(word);
  return array;
}

Metadata Sample() {
  Metadata metadata;
  metadata.Insert("flag", true);
  metadata.Insert("int", int64_t{-7});
  metadata.Insert("huge", std::numeric_limits<uint64_t>::max());
  metadata.Insert("float", 0.5);
  metadata.Insert("text", std::string("llama"));
  metadata.Insert("ints", IntArray{4, 8});
  metadata.Insert("floats", FloatArray{0.5f});
  metadata.Insert("words", Words({"a", "", "b"}));
  metadata.Insert("empty", IntArray{});
  return metadata;
}

auto Missing() {
  return StatusIs(absl::StatusCode::kNotFound,
                  HasSubstr("key none is missing"));
}
auto Wrong(const char* text) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
}

TEST(MetadataTest, GivesValuesAsTheTypeAskedFor) {
  const Metadata metadata = Sample();
  EXPECT_THAT(metadata.GetBool("flag"), IsOkAndHolds(true));
  EXPECT_THAT(metadata.GetInt("int"), IsOkAndHolds(-7));
  EXPECT_THAT(metadata.GetFloat("float"), IsOkAndHolds(0.5));
  EXPECT_THAT(metadata.GetFloat("int"), IsOkAndHolds(-7.0));
  EXPECT_THAT(metadata.GetFloat("huge"), IsOkAndHolds(18446744073709551616.0));
  EXPECT_THAT(metadata.GetString("text"), IsOkAndHolds("llama"));
  EXPECT_THAT(**metadata.GetInts("ints"), ElementsAre(4, 8));
  EXPECT_THAT(**metadata.GetFloats("floats"), ElementsAre(0.5f));
  EXPECT_EQ(**metadata.GetStrings("words"), Words({"a", "", "b"}));
}

TEST(MetadataTest, NamesAMissingKey) {
  const Metadata metadata = Sample();
  EXPECT_THAT(metadata.GetBool("none"), Missing());
  EXPECT_THAT(metadata.GetInt("none"), Missing());
  EXPECT_THAT(metadata.GetFloat("none"), Missing());
  EXPECT_THAT(metadata.GetString("none"), Missing());
  EXPECT_THAT(metadata.GetInts("none"), Missing());
  EXPECT_THAT(metadata.GetFloats("none"), Missing());
  EXPECT_THAT(metadata.GetStrings("none"), Missing());
  EXPECT_THAT(metadata.GetPerLayerInts("none", 2), Missing());
}

TEST(MetadataTest, SaysWhatAValueIsAndWhatWasExpected) {
  const Metadata metadata = Sample();
  EXPECT_THAT(metadata.GetBool("int"),
              Wrong("int is an integer, expected a bool"));
  EXPECT_THAT(metadata.GetInt("float"), Wrong("float is a float"));
  EXPECT_THAT(metadata.GetInt("flag"), Wrong("flag is a bool"));
  EXPECT_THAT(metadata.GetInt("huge"),
              Wrong("huge is 18446744073709551615, expected at most"));
  EXPECT_THAT(metadata.GetFloat("text"), Wrong("text is a string"));
  EXPECT_THAT(metadata.GetString("ints"), Wrong("an array of integers"));
  EXPECT_THAT(metadata.GetInts("floats"), Wrong("an array of floats"));
  EXPECT_THAT(metadata.GetFloats("ints"), Wrong("expected an array of floats"));
  EXPECT_THAT(metadata.GetStrings("text"), Wrong("an array of strings"));
}

TEST(MetadataTest, FallsBackOnlyWhereTheKeyIsMissing) {
  const Metadata metadata = Sample();
  EXPECT_THAT(metadata.GetIntOr("none", 3), IsOkAndHolds(3));
  EXPECT_THAT(metadata.GetIntOr("int", 3), IsOkAndHolds(-7));
  EXPECT_THAT(metadata.GetIntOr("text", 3), Wrong("text"));
  EXPECT_THAT(metadata.GetFloatOr("none", 1.5), IsOkAndHolds(1.5));
  EXPECT_THAT(metadata.GetFloatOr("text", 1.5), Wrong("text"));
  EXPECT_THAT(metadata.GetBoolOr("none", true), IsOkAndHolds(true));
  EXPECT_THAT(metadata.GetBoolOr("text", true), Wrong("text"));
  EXPECT_THAT(metadata.GetStringOr("none", "x"), IsOkAndHolds("x"));
  EXPECT_THAT(metadata.GetStringOr("int", "x"), Wrong("int"));
}

TEST(MetadataTest, GivesAnEmptyArrayAsWhateverArrayIsAskedFor) {
  const Metadata metadata = Sample();
  EXPECT_THAT(**metadata.GetInts("empty"), IsEmpty());
  EXPECT_THAT(**metadata.GetFloats("empty"), IsEmpty());
  EXPECT_EQ((*metadata.GetStrings("empty"))->size(), 0u);
}

TEST(MetadataTest, GivesPerLayerValuesOfScalarsAndOfFittingArrays) {
  const Metadata metadata = Sample();
  EXPECT_THAT(metadata.GetPerLayerInts("int", 3),
              IsOkAndHolds(ElementsAre(-7, -7, -7)));
  EXPECT_THAT(metadata.GetPerLayerInts("ints", 2),
              IsOkAndHolds(ElementsAre(4, 8)));
  EXPECT_THAT(metadata.GetPerLayerInts("ints", 3),
              Wrong("ints has 2 entries, expected one for each of 3 layers"));
  EXPECT_THAT(metadata.GetPerLayerInts("text", 3), Wrong("text"));
}

TEST(MetadataTest, KeepsTheFirstValueOfAKey) {
  Metadata metadata;
  EXPECT_TRUE(metadata.Insert("k", int64_t{1}));
  EXPECT_FALSE(metadata.Insert("k", int64_t{2}));
  EXPECT_THAT(metadata.GetInt("k"), IsOkAndHolds(1));
}

TEST(MetadataTest, CountsTheMemoryOfAVocabularyOnce) {
  Metadata metadata;
  StringArray tokens;
  for (int i = 0; i < 10'000; ++i) tokens.Append("token");
  const uint64_t bytes = tokens.memory_bytes();
  EXPECT_GE(bytes, 10'000u * (5 + 8));
  metadata.Insert("tokens", std::move(tokens));
  EXPECT_GE(metadata.memory_bytes(), bytes);
  EXPECT_LT(metadata.memory_bytes(), bytes + 1000);
}

TEST(MetadataTest, FormatsValuesOnOneLine) {
  const auto format = [](const MetadataValue& value) {
    return FormatMetadataValue(value, 40);
  };
  EXPECT_EQ(format(true), "true");
  EXPECT_EQ(format(int64_t{-7}), "-7");
  EXPECT_EQ(format(std::numeric_limits<uint64_t>::max()),
            "18446744073709551615");
  EXPECT_EQ(format(double{1e-5f}), "9.99999975e-06");
  EXPECT_EQ(format(std::string("a\nb")), "a\\nb");
  EXPECT_EQ(format(IntArray{}), "[]");
  EXPECT_EQ(format(IntArray{1, 2, 3}), "[1, 2, 3]");
  EXPECT_EQ(format(FloatArray{0.5f, -1}), "[0.5, -1]");
  EXPECT_EQ(format(Words({"a", "\n"})), "[\"a\", \"\\n\"]");
}

TEST(MetadataTest, FormatsLongValuesWithinTheLimit) {
  IntArray ints(5000, 123);
  StringArray words;
  for (int i = 0; i < 128256; ++i) words.Append("word");
  for (const size_t limit : {0u, 1u, 3u, 10u, 20u, 40u, 41u, 42u, 43u, 80u}) {
    EXPECT_LE(FormatMetadataValue(ints, limit).size(), limit);
    EXPECT_LE(FormatMetadataValue(words, limit).size(), limit);
    EXPECT_LE(FormatMetadataValue(std::string(500, 'x'), limit).size(), limit);
  }
  EXPECT_EQ(FormatMetadataValue(ints, 40),
            "[123, 123, 123, 123, ... 5000 entries]");
  EXPECT_THAT(FormatMetadataValue(words, 60),
              AllOf(HasSubstr("[\"word\", "), HasSubstr("128256 entries]")));
}

}  // namespace
}  // namespace coldstream
