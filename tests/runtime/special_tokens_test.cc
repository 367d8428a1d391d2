#include "runtime/special_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Splitter {
  TokenTable table;
  std::vector<SpecialTokenSplitter::Entry> entries;
  SpecialTokenSplitter splitter;

  TokenId Add(std::string_view text, bool always) {
    entries.push_back({table.Add(text), always});
    return entries.back().id;
  }
  // Ordinary text as it is, tokens as "#id".
  std::vector<std::string> Split(std::string_view text, SpecialTokens special) {
    return SplitRegions(text, {{text.size(), special}});
  }
  std::vector<std::string> SplitRegions(
      std::string_view text,
      std::vector<SpecialTokenSplitter::Region> regions) {
    splitter = SpecialTokenSplitter(table, entries);
    std::vector<std::string> out;
    splitter.Split(
        table, text, regions, [&](const SpecialTokenSplitter::Fragment& f) {
          out.push_back(f.token < 0 ? std::string(f.text)
                                    : absl::StrFormat("#%d", f.token));
        });
    return out;
  }
};

TEST(SpecialTokensTest, WithoutTokensTheTextIsOneFragment) {
  Splitter s;
  EXPECT_THAT(s.Split("abc", SpecialTokens::kParse), ElementsAre("abc"));
  EXPECT_THAT(s.Split("", SpecialTokens::kParse), IsEmpty());
}

TEST(SpecialTokensTest, ControlTokensAreFoundOnlyWhereAskedFor) {
  Splitter s;
  s.Add("<x>", /*always=*/false);
  EXPECT_THAT(s.Split("a<x>b", SpecialTokens::kParse),
              ElementsAre("a", "#0", "b"));
  EXPECT_THAT(s.Split("a<x>b", SpecialTokens::kAsText), ElementsAre("a<x>b"));
}

TEST(SpecialTokensTest, UserDefinedTokensAreAlwaysFound) {
  Splitter s;
  s.Add("<x>", true);
  s.Add("<y>", false);
  EXPECT_THAT(s.Split("<x><y><x>", SpecialTokens::kAsText),
              ElementsAre("#0", "<y>", "#0"));
}

TEST(SpecialTokensTest, TheFirstStartWinsThenTheLongest) {
  Splitter s;
  s.Add("ab", true);
  s.Add("abc", true);
  s.Add("bcdef", true);
  s.Add("abcdx", true);
  EXPECT_THAT(s.Split("abcdef", SpecialTokens::kAsText),
              ElementsAre("#1", "def"));
  EXPECT_THAT(s.Split("abcdx", SpecialTokens::kAsText), ElementsAre("#3"));
  EXPECT_THAT(s.Split("xbcdef", SpecialTokens::kAsText),
              ElementsAre("x", "#2"));
  EXPECT_THAT(s.Split("abab", SpecialTokens::kAsText), ElementsAre("#0", "#0"));
}

TEST(SpecialTokensTest, ALongerControlTokenDoesNotHideAShorterUserDefinedOne) {
  Splitter s;
  s.Add("<|", true);
  s.Add("<|end|>", false);
  EXPECT_THAT(s.Split("<|end|>", SpecialTokens::kAsText),
              ElementsAre("#0", "end|>"));
  EXPECT_THAT(s.Split("<|end|>", SpecialTokens::kParse), ElementsAre("#1"));
}

TEST(SpecialTokensTest, EmptyTextsNeverMatchAndEqualTextsMatchOnce) {
  Splitter s;
  s.Add("", true);
  s.Add("\xFF", false);
  s.Add("\xFF", true);
  EXPECT_THAT(s.Split("a\xFF", SpecialTokens::kAsText), ElementsAre("a", "#2"));
}

TEST(SpecialTokensTest, ATokenCutOffByTheEndIsText) {
  Splitter s;
  s.Add("<end>", false);
  EXPECT_THAT(s.Split("a<end", SpecialTokens::kParse), ElementsAre("a<end"));
  EXPECT_THAT(s.Split("<<end>", SpecialTokens::kParse), ElementsAre("<", "#0"));
}

TEST(SpecialTokensTest, EachRegionSaysItselfWhatControlTokensAre) {
  Splitter s;
  s.Add("<x>", /*always=*/false);
  EXPECT_THAT(s.SplitRegions("<x><x><x>", {{3, SpecialTokens::kParse},
                                           {6, SpecialTokens::kAsText},
                                           {9, SpecialTokens::kParse}}),
              ElementsAre("#0", "<x>", "#0"));
}

TEST(SpecialTokensTest, NoTokenReachesFromOneRegionIntoAnother) {
  Splitter s;
  s.Add("<x>", false);
  s.Add("<x", true);
  EXPECT_THAT(s.SplitRegions("a<x>b", {{2, SpecialTokens::kParse},
                                       {5, SpecialTokens::kParse}}),
              ElementsAre("a<x>b"));
  EXPECT_THAT(s.SplitRegions("a<x>b", {{3, SpecialTokens::kParse},
                                       {5, SpecialTokens::kParse}}),
              ElementsAre("a", "#1", ">b"));
}

TEST(SpecialTokensTest, OrdinaryTextGoesOnOverTheEndsOfRegions) {
  Splitter s;
  s.Add("<x>", false);
  EXPECT_THAT(s.SplitRegions("abcd", {{1, SpecialTokens::kParse},
                                      {1, SpecialTokens::kAsText},
                                      {4, SpecialTokens::kAsText}}),
              ElementsAre("abcd"));
}

}  // namespace
}  // namespace coldstream
