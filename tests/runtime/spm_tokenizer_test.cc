#include "runtime/spm_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/runtime/small_vocabulary.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kPrefixKey = "tokenizer.ggml.add_space_prefix";

std::unique_ptr<Tokenizer> Make(const SmallSpm& spm) {
  auto tokenizer = Tokenizer::Create(spm.Build());
  EXPECT_THAT(tokenizer, IsOk());
  return *std::move(tokenizer);
}

std::vector<TokenId> Encode(const Tokenizer& tokenizer, std::string_view text,
                            SpecialTokens special = SpecialTokens::kAsText) {
  return tokenizer.Encode(text, special);
}

TokenId ByteId(int byte) { return SmallSpm::kFirstByte + byte; }

TEST(SpmTokenizerTest, TheHighestScoreMergesFirst) {
  SmallSpm spm;
  spm.Set(kPrefixKey, false);
  const TokenId a = spm.Add("a", -10);
  spm.Add("b", -11);
  const TokenId c = spm.Add("c", -12);
  const TokenId ab = spm.Add("ab", -2);
  const TokenId bc = spm.Add("bc", -1);
  const auto tokenizer = Make(spm);
  EXPECT_THAT(Encode(*tokenizer, "abc"), ElementsAre(a, bc));
  EXPECT_THAT(Encode(*tokenizer, "abab"), ElementsAre(ab, ab));
  EXPECT_THAT(Encode(*tokenizer, "cc"), ElementsAre(c, c));
}

TEST(SpmTokenizerTest, EqualScoresMergeFromTheLeftAndSignsOfScoresSort) {
  SmallSpm spm;
  spm.Set(kPrefixKey, false);
  const TokenId a = spm.Add("a", 0);
  const TokenId aa = spm.Add("aa", 0.0f);
  spm.Add("b", 0);
  const TokenId ab = spm.Add("ab", 1.5f);
  const TokenId bb = spm.Add("bb", -0.0f);
  const auto tokenizer = Make(spm);
  EXPECT_THAT(Encode(*tokenizer, "aaa"), ElementsAre(aa, a));
  EXPECT_THAT(Encode(*tokenizer, "aab"), ElementsAre(a, ab));
  EXPECT_THAT(Encode(*tokenizer, "bba"), ElementsAre(bb, a));
}

TEST(SpmTokenizerTest, ASpaceGoesInFrontOnceAndComesOffAgain) {
  SmallSpm spm;
  const TokenId space = spm.Add("\u2581", -3);
  const TokenId a = spm.Add("a", -4);
  const TokenId space_a = spm.Add("\u2581a", -1);
  const auto tokenizer = Make(spm);
  EXPECT_THAT(Encode(*tokenizer, "a"), ElementsAre(space_a));
  EXPECT_THAT(Encode(*tokenizer, " a"), ElementsAre(space, space_a));
  EXPECT_THAT(Encode(*tokenizer, "aa a"), ElementsAre(space_a, a, space_a));
  EXPECT_THAT(Encode(*tokenizer, ""), IsEmpty());
  EXPECT_EQ(tokenizer->DecodeAll({space_a, a, space_a}), "aa a");
  EXPECT_EQ(tokenizer->DecodeAll({space, space_a}), " a");
  EXPECT_EQ(tokenizer->DecodeAll({SmallSpm::kBos, space_a}), "a");
  EXPECT_EQ(tokenizer->Decode(space_a), " a");
}

TEST(SpmTokenizerTest, WithoutThePrefixTextIsAsItIs) {
  SmallSpm spm;
  spm.Set(kPrefixKey, false);
  const TokenId a = spm.Add("a", -4);
  const TokenId space_a = spm.Add("\u2581a", -1);
  spm.Add("\u2581", -3);
  const auto tokenizer = Make(spm);
  EXPECT_THAT(Encode(*tokenizer, "a a"), ElementsAre(a, space_a));
  EXPECT_EQ(tokenizer->DecodeAll({space_a}), " a");
}

TEST(SpmTokenizerTest, NoSpaceGoesBehindASpecialToken) {
  SmallSpm spm;
  const TokenId a = spm.Add("a", -4);
  const TokenId space_a = spm.Add("\u2581a", -1);
  const TokenId user = spm.Add("<|user|>", 0, TokenType::kControl);
  const auto tokenizer = Make(spm);
  EXPECT_THAT(Encode(*tokenizer, "<|user|>a a", SpecialTokens::kParse),
              ElementsAre(user, a, space_a));
  EXPECT_THAT(Encode(*tokenizer, "a<|user|>a", SpecialTokens::kParse),
              ElementsAre(space_a, user, a));
  EXPECT_EQ(tokenizer->DecodeAll({user, space_a}), " a");
}

TEST(SpmTokenizerTest, CharactersWithoutATokenBecomeBytes) {
  SmallSpm spm;
  spm.Set(kPrefixKey, false);
  const auto tokenizer = Make(spm);
  EXPECT_THAT(
      Encode(*tokenizer, "\n\u00E9\xFF"),
      ElementsAre(ByteId('\n'), ByteId(0xC3), ByteId(0xA9), ByteId(0xFF)));
  EXPECT_EQ(tokenizer->Decode(ByteId('\n')), "\n");
  EXPECT_EQ(tokenizer->DecodeAll({ByteId(0xC3), ByteId(0xA9)}), "\u00E9");
}

TEST(SpmTokenizerTest, WithoutByteTokensARunOfUnknownsIsOne) {
  SmallSpm spm(/*byte_fallback=*/false);
  spm.Set(kPrefixKey, false);
  const TokenId a = spm.Add("a", 0);
  EXPECT_THAT(Encode(*Make(spm),
                     "\u00E9\u00E8"
                     "a\n"),
              ElementsAre(SmallSpm::kUnknown, a, SmallSpm::kUnknown));
}

TEST(SpmTokenizerTest, TextNeverSpellsControlUnknownOrByteTokens) {
  SmallSpm spm;
  spm.Set(kPrefixKey, false);
  for (const char* piece : {"<", "s", ">", "u", "n", "k", "0", "x", "A", "<s",
                            "un", "unk", "<unk", "0x", "<0", "<0x"}) {
    spm.Add(piece, -1);
  }
  const auto tokenizer = Make(spm);
  for (const char* text : {"<s>", "<unk>", "<0x0A>", "</s>"}) {
    for (const TokenId id : Encode(*tokenizer, text)) {
      EXPECT_NE(id, SmallSpm::kBos) << text;
      EXPECT_NE(id, SmallSpm::kEos) << text;
      EXPECT_NE(id, SmallSpm::kUnknown) << text;
      EXPECT_NE(id, ByteId('\n')) << text;
    }
  }
  EXPECT_THAT(Encode(*tokenizer, "<s>", SpecialTokens::kParse),
              ElementsAre(SmallSpm::kBos));
}

TEST(SpmTokenizerTest, UserDefinedTokensAreMatchedAlways) {
  SmallSpm spm;
  spm.Set(kPrefixKey, false);
  const TokenId two = spm.Add("\u2581\u2581", 0, TokenType::kUserDefined);
  const TokenId tag = spm.Add("<h1>", 0, TokenType::kUserDefined);
  const auto tokenizer = Make(spm);
  EXPECT_THAT(Encode(*tokenizer, "    <h1>"), ElementsAre(two, two, tag));
  EXPECT_EQ(tokenizer->DecodeAll({two, tag}), "  <h1>");
}

TEST(SpmTokenizerTest, UnusedTokensAreWayStationsOnly) {
  SmallSpm spm;
  spm.Set(kPrefixKey, false);
  const TokenId a = spm.Add("a", -9);
  const TokenId b = spm.Add("b", -9);
  spm.Add("ab", -1, TokenType::kUnused);
  const TokenId abc = spm.Add("abc", -2);
  spm.Add("c", -9);
  spm.Add("abab", -3, TokenType::kUnused);
  const auto tokenizer = Make(spm);
  EXPECT_THAT(Encode(*tokenizer, "abc"), ElementsAre(abc));
  EXPECT_THAT(Encode(*tokenizer, "ab"), ElementsAre(a, b));
  EXPECT_THAT(Encode(*tokenizer, "abab"), ElementsAre(a, b, a, b));
}

TEST(SpmTokenizerTest, AnyBytesRoundTrip) {
  SmallSpm spm;
  for (const char* piece : {"\u2581", "a", "b", "ab", "\u2581a", "\u20AC"}) {
    spm.Add(piece, -1);
  }
  const auto tokenizer = Make(spm);
  std::mt19937 rng(5);
  for (int round = 0; round < 500; ++round) {
    std::string text(rng() % 40, '\0');
    for (char& byte : text) {
      byte = rng() % 2 == 0 ? "ab\xE2\x82\xAC  \n"[rng() % 8]
                            : static_cast<char>(rng());
    }
    if (text.find("\u2581") != std::string::npos) continue;
    ASSERT_EQ(tokenizer->DecodeAll(Encode(*tokenizer, text)), text)
        << testing::PrintToString(text);
  }
}

TEST(SpmTokenizerTest, TheSpaceMarkInTextIsASpace) {
  SmallSpm spm;
  spm.Set(kPrefixKey, false);
  const TokenId space = spm.Add("\u2581", -3);
  EXPECT_THAT(Encode(*Make(spm), "\u2581 "), ElementsAre(space, space));
}

TEST(SpmTokenizerTest, ABadByteTokenIsNamed) {
  for (const char* text : {"<0x-1>", "<0xG0>", "<0x0>", "<0x000>", "", "A"}) {
    SmallSpm spm;
    spm.Add(text, 0, TokenType::kByte);
    EXPECT_THAT(Tokenizer::Create(spm.Build()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("tokenizer.ggml.tokens"),
                               HasSubstr("entry 259"))))
        << text;
  }
}

TEST(SpmTokenizerTest, WithoutTypesByteTokensAndTheNamedIdsAreTakenByText) {
  SmallSpm spm;
  spm.Set(kPrefixKey, false);
  spm.LeaveOutTypes();
  const auto tokenizer = Make(spm);
  EXPECT_THAT(Encode(*tokenizer, "\n"), ElementsAre(ByteId('\n')));
  EXPECT_EQ(tokenizer->Decode(SmallSpm::kEos), "");
  EXPECT_EQ(Encode(*tokenizer, "</s>").size(), 4u);
}

TEST(SpmTokenizerTest, ScoresMustFitTheTokens) {
  SmallSpm spm;
  spm.Add("a", std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(Tokenizer::Create(spm.Build()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("tokenizer.ggml.scores"),
                             HasSubstr("entry 259"))));
  Metadata m;
  const Metadata built = SmallSpm().Build();
  for (const auto& [key, value] : built.values()) {
    if (key != "tokenizer.ggml.scores") m.Insert(key, value);
  }
  EXPECT_THAT(Tokenizer::Create(m),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("ggml.scores")));
  m.Insert("tokenizer.ggml.scores", FloatArray{1, 2, 3});
  EXPECT_THAT(Tokenizer::Create(m),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got 3")));
}

TEST(SpmTokenizerTest, APreTokenizerCannotBeAskedFor) {
  EXPECT_THAT(
      Tokenizer::Create(SmallSpm().Build(), {.pre = "qwen2"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--pre qwen2")));
}

}  // namespace
}  // namespace coldstream
