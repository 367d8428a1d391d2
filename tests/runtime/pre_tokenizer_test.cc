#include "runtime/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/tokenizer.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kRuleNames[] = {"llama-bpe", "qwen2", "command-r",
                                           "smollm",    "gpt-2", "default"};

std::vector<std::string> Words(std::string_view rule, std::string_view text) {
  auto pre = PreTokenizer::Create(rule);
  EXPECT_THAT(pre, IsOk());
  std::vector<std::string> words;
  PreTokenizer::Scratch scratch(*pre);
  pre->Split(text, &scratch,
             [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

TEST(PreTokenizerTest, Gpt2KeepsOneSpaceWithAWordAndRunsOfDigitsTogether) {
  EXPECT_THAT(Words("gpt-2", "Hello  world 1234, it's"),
              ElementsAre("Hello", " ", " world", " 1234", ",", " it", "'s"));
  EXPECT_THAT(Words("gpt-2", "it'S"), ElementsAre("it", "'", "S"));
}

TEST(PreTokenizerTest, Gpt2TakesTrailingSpacesAsOneWord) {
  EXPECT_THAT(Words("gpt-2", "a \n\n "), ElementsAre("a", " \n\n "));
  EXPECT_THAT(Words("gpt-2", "\nfoo"), ElementsAre("\n", "foo"));
}

TEST(PreTokenizerTest, LlamaTakesThreeDigitsNewlinesAndContractionsOfAnyCase) {
  EXPECT_THAT(Words("llama-bpe", "12345"), ElementsAre("123", "45"));
  EXPECT_THAT(Words("llama-bpe", "IT'S"), ElementsAre("IT", "'S"));
  EXPECT_THAT(Words("llama-bpe", "a;\n\n b"), ElementsAre("a", ";\n\n", " b"));
  EXPECT_THAT(Words("llama-bpe", "x \n  y"),
              ElementsAre("x", " \n", " ", " y"));
  EXPECT_THAT(Words("llama-bpe", "(word"), ElementsAre("(word"));
  // U+017F is an s of another case.
  EXPECT_THAT(Words("llama-bpe", "a'\u017Fx"),
              ElementsAre("a", "'\u017F", "x"));
}

TEST(PreTokenizerTest, QwenTakesSingleDigits) {
  EXPECT_THAT(Words("qwen2", " 123"), ElementsAre(" ", "1", "2", "3"));
  EXPECT_THAT(Words("qwen2", "a\u00BD"), ElementsAre("a", "\u00BD"));
}

TEST(PreTokenizerTest, SmollmAndCommandRCutDigitsFirstAndLeaveSpacesWhole) {
  for (const char* rule : {"smollm", "command-r"}) {
    EXPECT_THAT(Words(rule, "ab  12 c"),
                ElementsAre("ab", "  ", "1", "2", " c"));
    EXPECT_THAT(Words(rule, "IT'S"), ElementsAre("IT", "'", "S"));
  }
}

TEST(PreTokenizerTest, DefaultCutsPunctuationThenThreeDigits) {
  EXPECT_THAT(
      Words("default", "it's 12345!! a-b"),
      ElementsAre("it", "'", "s", " ", "123", "45", "!!", " a", "-", "b"));
}

TEST(PreTokenizerTest, OddSpacesAreSpacesAndTheMongolianSeparatorIsNot) {
  EXPECT_THAT(Words("gpt-2", "a\u00A0\u3000b"),
              ElementsAre("a", "\u00A0", "\u3000", "b"));
  EXPECT_THAT(Words("gpt-2", "a\u180E\u180Eb"),
              ElementsAre("a", "\u180E\u180E", "b"));
}

TEST(PreTokenizerTest, CombiningMarksAndZeroWidthJoinersAreSigns) {
  EXPECT_THAT(Words("gpt-2", "e\u0301a"), ElementsAre("e", "\u0301", "a"));
  EXPECT_THAT(Words("llama-bpe", "\u200D\u200Da"),
              ElementsAre("\u200D\u200D", "a"));
}

TEST(PreTokenizerTest, InvalidBytesAreWordsOfTheirOwn) {
  EXPECT_THAT(Words("gpt-2", "ab\xFF\xFE cd\xC3"),
              ElementsAre("ab", "\xFF\xFE", " cd", "\xC3"));
}

TEST(PreTokenizerTest, EmptyTextHasNoWords) {
  for (const std::string_view rule : kRuleNames) {
    EXPECT_THAT(Words(rule, ""), IsEmpty());
  }
}

TEST(PreTokenizerTest, WordsOfAnyBytesAddUpToTheText) {
  std::mt19937 rng(7);
  const std::vector<std::string> bits = {
      "a", "B",  "'s", "'",      "1",      "\u00BD", " ",    "\n",   "\r",
      ",", "++", "é",  "\u0301", "\u3000", "\xFF",   "\xE2", "\x82", "😀"};
  for (const std::string_view rule : kRuleNames) {
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (size_t n = rng() % 20; n > 0; --n) text += bits[rng() % bits.size()];
      std::string joined;
      for (const std::string& word : Words(rule, text)) {
        ASSERT_FALSE(word.empty());
        joined += word;
      }
      ASSERT_EQ(joined, text) << rule;
    }
  }
}

TEST(PreTokenizerTest, AliasesMeanTheRuleTheyShare) {
  for (const auto& [alias, name] :
       {std::pair("llama3", "llama-bpe"), std::pair("llama-v3", "llama-bpe"),
        std::pair("starcoder", "smollm"), std::pair("phi-2", "gpt-2")}) {
    auto pre = PreTokenizer::Create(alias);
    ASSERT_THAT(pre, IsOk()) << alias;
    EXPECT_EQ(pre->rule().name, name);
  }
}

TEST(PreTokenizerTest, AnUnknownRuleIsNamedWithTheKnownOnes) {
  EXPECT_THAT(PreTokenizer::Create("no-such"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"no-such\""), HasSubstr("--pre"),
                             HasSubstr(KnownPreTokenizers()))));
}

TEST(PreTokenizerTest, AMissingRuleIsAnErrorNotTheDefault) {
  EXPECT_THAT(PreTokenizer::Create(""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("tokenizer.ggml.pre"),
                             HasSubstr("missing"), HasSubstr("--pre"))));
}

}  // namespace
}  // namespace coldstream
