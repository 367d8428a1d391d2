#include "runtime/bpe_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/runtime/small_vocabulary.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using std::string_literals::operator""s;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Tokenizer> Make(const SmallBpe& bpe) {
  auto tokenizer = Tokenizer::Create(bpe.Build());
  EXPECT_THAT(tokenizer, IsOk());
  return *std::move(tokenizer);
}

std::vector<TokenId> Encode(const Tokenizer& tokenizer, std::string_view text,
                            SpecialTokens special = SpecialTokens::kAsText) {
  return tokenizer.Encode(text, special);
}

TEST(BpeTokenizerTest, MergesFollowTheirRankNotTheirPlace) {
  SmallBpe bpe("gpt-2");
  const TokenId bc = bpe.Merge("b", "c");
  const TokenId ab = bpe.Merge("a", "b");
  const TokenId abc = bpe.Merge("a", "bc");
  const auto tokenizer = Make(bpe);
  EXPECT_THAT(Encode(*tokenizer, "ab"), ElementsAre(ab));
  EXPECT_THAT(Encode(*tokenizer, "abc"), ElementsAre(abc));
  EXPECT_THAT(Encode(*tokenizer, "xbcab"), ElementsAre('x', bc, ab));
}

TEST(BpeTokenizerTest, MergesDoNotCrossWords) {
  SmallBpe bpe("gpt-2");
  bpe.Merge("a", " b");
  const TokenId space_b = bpe.Merge(" ", "b");
  EXPECT_THAT(Encode(*Make(bpe), "a b"), ElementsAre('a', space_b));
}

TEST(BpeTokenizerTest, AWholeWordWithoutMergesIsTakenOnlyWhereTheRuleSaysSo) {
  for (const auto& [pre, whole] :
       {std::pair("llama-bpe", true), std::pair("qwen2", false)}) {
    SmallBpe bpe(pre);
    const TokenId word = bpe.AddBytes("word");
    const auto tokenizer = Make(bpe);
    if (whole) {
      EXPECT_THAT(Encode(*tokenizer, "word"), ElementsAre(word));
    } else {
      EXPECT_THAT(Encode(*tokenizer, "word"), ElementsAre('w', 'o', 'r', 'd'));
    }
    EXPECT_EQ(Encode(*tokenizer, "words").size(), 5u);
  }
}

TEST(BpeTokenizerTest, AMergeThroughATextThatIsNoTokenStillLeadsOn) {
  SmallBpe bpe("gpt-2");
  bpe.OnlyMerge("a", "b");
  const TokenId abc = bpe.Merge("ab", "c");
  const auto tokenizer = Make(bpe);
  EXPECT_THAT(Encode(*tokenizer, "abc"), ElementsAre(abc));
  EXPECT_THAT(Encode(*tokenizer, "abd"), ElementsAre('a', 'b', 'd'));
}

TEST(BpeTokenizerTest, OfRepeatedMergesTheFirstRankCounts) {
  SmallBpe bpe("gpt-2");
  bpe.Merge("a", "b");
  const TokenId bc = bpe.Merge("b", "c");
  bpe.OnlyMerge("a", "b");
  EXPECT_EQ(Encode(*Make(bpe), "abc").back(), 'c');
  EXPECT_THAT(Encode(*Make(bpe), "xbc"), ElementsAre('x', bc));
}

TEST(BpeTokenizerTest, AnyBytesRoundTrip) {
  SmallBpe bpe("llama-bpe");
  bpe.Merge("a", "b");
  bpe.Merge("\xE2", "\x82");
  bpe.Merge("\xE2\x82", "\xAC");
  const auto tokenizer = Make(bpe);
  std::mt19937 rng(3);
  for (int round = 0; round < 500; ++round) {
    std::string text(rng() % 40, '\0');
    for (char& byte : text) {
      byte = rng() % 2 == 0 ? "ab\xE2\x82\xAC 1\n"[rng() % 9]
                            : static_cast<char>(rng());
    }
    ASSERT_EQ(tokenizer->DecodeAll(Encode(*tokenizer, text)), text);
  }
}

TEST(BpeTokenizerTest, ControlTokensComeFromTextOnlyWhereParsed) {
  SmallBpe bpe("gpt-2");
  const TokenId end = bpe.Add("<|end|>", TokenType::kControl);
  const auto tokenizer = Make(bpe);
  EXPECT_THAT(Encode(*tokenizer, "a<|end|>b", SpecialTokens::kParse),
              ElementsAre('a', end, 'b'));
  EXPECT_EQ(Encode(*tokenizer, "a<|end|>b").size(), 9u);
}

TEST(BpeTokenizerTest, NoMergeAndNoWholeWordGivesAControlToken) {
  SmallBpe bpe("llama-bpe");
  bpe.Add("stop", TokenType::kControl);
  bpe.OnlyMerge("s", "t");
  bpe.OnlyMerge("o", "p");
  bpe.OnlyMerge("st", "op");
  EXPECT_THAT(Encode(*Make(bpe), "stop"), ElementsAre('s', 't', 'o', 'p'));
}

TEST(BpeTokenizerTest, UserDefinedTokensAreMatchedAlwaysAndAsTheyAreSpelled) {
  SmallBpe bpe("gpt-2");
  const TokenId tool = bpe.Add("<tool call>", TokenType::kUserDefined);
  const auto tokenizer = Make(bpe);
  EXPECT_THAT(Encode(*tokenizer, "a<tool call>b"), ElementsAre('a', tool, 'b'));
  EXPECT_EQ(tokenizer->Decode(tool), "<tool call>");
}

TEST(BpeTokenizerTest, TextIsComposedOnlyBehindTheRulesThatWereTrainedSo) {
  for (const auto& [pre, composes] :
       {std::pair("qwen2", true), std::pair("command-r", true),
        std::pair("llama-bpe", false), std::pair("smollm", false)}) {
    const auto tokenizer = Make(SmallBpe(pre));
    EXPECT_EQ(tokenizer->DecodeAll(Encode(*tokenizer, "e\u0301\xFF")),
              composes ? "\u00E9\xFF" : "e\u0301\xFF")
        << pre;
  }
}

TEST(BpeTokenizerTest, AByteWithoutATokenIsTheUnknownTokenOrNothing) {
  for (const auto& [type, ids] :
       {std::pair(TokenType::kUnknown, std::vector<TokenId>{0, 1, 0}),
        std::pair(TokenType::kControl, std::vector<TokenId>{1})}) {
    Metadata m;
    StringArray tokens;
    tokens.Append("<unk>");
    tokens.Append("a");
    m.Insert("tokenizer.ggml.model", "gpt2"s);
    m.Insert("tokenizer.ggml.pre", "gpt-2"s);
    m.Insert("tokenizer.ggml.tokens", tokens);
    m.Insert("tokenizer.ggml.merges", StringArray());
    m.Insert("tokenizer.ggml.unknown_token_id", int64_t{0});
    m.Insert("tokenizer.ggml.token_type",
             IntArray{static_cast<int64_t>(type), 1});
    auto tokenizer = Tokenizer::Create(m);
    ASSERT_THAT(tokenizer, IsOk());
    EXPECT_EQ(Encode(**tokenizer, "\na\n"), ids);
  }
}

TEST(BpeTokenizerTest, ATokenWithACharacterOutsideTheByteMapKeepsItsText) {
  SmallBpe bpe("gpt-2");
  const TokenId odd = bpe.Add("\u4F60 x\0y"s, TokenType::kNormal);
  const auto tokenizer = Make(bpe);
  EXPECT_EQ(tokenizer->Decode(odd), "\u4F60 x\0y"s);
  EXPECT_EQ(Encode(*tokenizer, "\u4F60").size(), 3u);
}

TEST(BpeTokenizerTest, ControlAndPaddingIdsDecodeToNothing) {
  SmallBpe bpe("gpt-2");
  const TokenId end = bpe.Add("<|end|>", TokenType::kControl);
  const auto tokenizer = Make(bpe);
  EXPECT_EQ(tokenizer->Decode(end), "");
  EXPECT_EQ(tokenizer->Decode(end, /*with_special=*/true), "<|end|>");
  for (const TokenId outside : {-1, end + 1, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer->Decode(outside, true), "") << outside;
  }
  EXPECT_EQ(tokenizer->DecodeAll({'a', end, 99999, 'b'}), "ab");
}

TEST(BpeTokenizerTest, EmptyTextHasNoTokens) {
  EXPECT_THAT(Encode(*Make(SmallBpe("qwen2")), ""), IsEmpty());
}

TEST(BpeTokenizerTest, AMergeThatIsNotTwoTextsIsNamed) {
  for (const char* merge : {"ab", "a ", " a", ""}) {
    SmallBpe bpe("gpt-2");
    Metadata m;
    const Metadata built = bpe.Build();
    for (const auto& [key, value] : built.values()) {
      if (key != "tokenizer.ggml.merges") m.Insert(key, value);
    }
    StringArray merges;
    merges.Append("a b");
    merges.Append(merge);
    m.Insert("tokenizer.ggml.merges", merges);
    EXPECT_THAT(Tokenizer::Create(m),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("tokenizer.ggml.merges"),
                               HasSubstr("entry 1"))))
        << merge;
  }
}

TEST(BpeTokenizerTest, PreOverridesTheFile) {
  SmallBpe bpe("gpt-2");
  bpe.Merge("1", "2");
  auto tokenizer = Tokenizer::Create(bpe.Build(), {.pre = "qwen2"});
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_THAT(Encode(**tokenizer, "12"), ElementsAre('1', '2'));
  EXPECT_EQ((*tokenizer)->description(), "gpt2/qwen2");
}

}  // namespace
}  // namespace coldstream
