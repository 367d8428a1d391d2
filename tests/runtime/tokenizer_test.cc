#include "runtime/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/small_vocabulary.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using std::string_literals::operator""s;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Tokenizer> Make(const Metadata& metadata) {
  auto tokenizer = Tokenizer::Create(metadata);
  EXPECT_THAT(tokenizer, IsOk());
  return *std::move(tokenizer);
}

Metadata Without(const Metadata& metadata, std::string_view key) {
  Metadata out;
  for (const auto& [name, value] : metadata.values()) {
    if (name != key) out.Insert(name, value);
  }
  return out;
}

TEST(TokenizerTest, AnUnknownFamilyIsNamedWithTheKnownOnes) {
  Metadata m;
  EXPECT_THAT(
      Tokenizer::Create(m),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("tokenizer.ggml.model")));
  m.Insert("tokenizer.ggml.model", "bert"s);
  EXPECT_THAT(Tokenizer::Create(m),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"bert\""), HasSubstr("gpt2"),
                             HasSubstr("llama"))));
}

TEST(TokenizerTest, AMissingOrUnknownPreTokenizerIsAnErrorUntilOneIsGiven) {
  for (const char* pre : {"", "mystery-7b"}) {
    const Metadata m = SmallBpe(pre).Build();
    EXPECT_THAT(Tokenizer::Create(m),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("tokenizer.ggml.pre"), HasSubstr(pre),
                               HasSubstr("--pre"), HasSubstr("llama-bpe"))));
    EXPECT_THAT(Tokenizer::Create(m, {.pre = "default"}), IsOk());
  }
}

TEST(TokenizerTest, MissingArraysAreNamed) {
  const Metadata m = SmallBpe("gpt-2").Build();
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.merges"}) {
    EXPECT_THAT(Tokenizer::Create(Without(m, key)),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(key)));
  }
}

TEST(TokenizerTest, AddBosFollowsTheKeyElseTheFamily) {
  const auto add_bos = [](std::string_view pre, std::optional<bool> key,
                          bool with_bos) {
    SmallBpe bpe(pre);
    if (with_bos) bpe.Set("tokenizer.ggml.bos_token_id", int64_t{1});
    if (key) bpe.Set("tokenizer.ggml.add_bos_token", *key);
    return Make(bpe.Build())->add_bos();
  };
  EXPECT_TRUE(add_bos("llama-bpe", std::nullopt, true));
  EXPECT_FALSE(add_bos("llama-bpe", false, true));
  EXPECT_FALSE(add_bos("llama-bpe", std::nullopt, false));
  EXPECT_FALSE(add_bos("qwen2", std::nullopt, true));
  EXPECT_TRUE(add_bos("qwen2", true, true));
  EXPECT_FALSE(add_bos("smollm", std::nullopt, true));
  EXPECT_TRUE(Make(SmallSpm().Build())->add_bos());
  EXPECT_FALSE(Make(SmallSpm().Build())->add_eos());
}

TEST(TokenizerTest, AddBosOrEosWithoutAnIdIsAnError) {
  for (const char* what : {"bos", "eos"}) {
    SmallBpe bpe("qwen2");
    bpe.Set(absl::StrFormat("tokenizer.ggml.add_%s_token", what), true);
    EXPECT_THAT(Tokenizer::Create(bpe.Build()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrFormat("%s_token_id", what))));
  }
}

TEST(TokenizerTest, SentencePieceHasItsCustomaryIdsWhereTheFileNamesNone) {
  const auto tokenizer = Make(SmallSpm().Build());
  EXPECT_EQ(tokenizer->bos(), SmallSpm::kBos);
  EXPECT_EQ(tokenizer->eos(), SmallSpm::kEos);
  const auto bpe = Make(SmallBpe("gpt-2").Build());
  EXPECT_EQ(bpe->bos(), std::nullopt);
  EXPECT_EQ(bpe->eos(), std::nullopt);
  EXPECT_THAT(bpe->end_of_generation(), IsEmpty());
}

TEST(TokenizerTest, EndOfGenerationHoldsTheNamedIdsAndTheWellKnownTexts) {
  SmallBpe bpe("qwen2");
  const TokenId text = bpe.Add("<|endoftext|>", TokenType::kControl);
  const TokenId start = bpe.Add("<|im_start|>", TokenType::kControl);
  const TokenId end = bpe.Add("<|im_end|>", TokenType::kControl);
  const TokenId own = bpe.Add("<|halt|>", TokenType::kControl);
  const TokenId ordinary = bpe.Add("<|eot_id|>", TokenType::kNormal);
  bpe.Set("tokenizer.ggml.eos_token_id", int64_t{end});
  bpe.Set("tokenizer.ggml.eot_token_id", int64_t{end});
  bpe.Set("tokenizer.ggml.eom_token_id", int64_t{own});
  const auto tokenizer = Make(bpe.Build());
  EXPECT_THAT(tokenizer->end_of_generation(), ElementsAre(text, end, own));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(end));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(start));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(ordinary));
  EXPECT_EQ(tokenizer->eos(), end);
}

TEST(TokenizerTest, ANamedTokenThatLooksLikeControlIsControlWhateverItsType) {
  SmallBpe bpe("llama-bpe");
  const TokenId eot = bpe.Add("<|eot_id|>", TokenType::kNormal);
  bpe.Set("tokenizer.ggml.eot_token_id", int64_t{eot});
  bpe.Set("tokenizer.ggml.eos_token_id", int64_t{'\n'});
  const auto tokenizer = Make(bpe.Build());
  EXPECT_EQ(tokenizer->Decode(eot), "");
  EXPECT_THAT(tokenizer->Encode("<|eot_id|>", SpecialTokens::kParse),
              ElementsAre(eot));
  EXPECT_EQ(tokenizer->Decode('\n'), "\n");
}

TEST(TokenizerTest, AnIdOutsideTheVocabularyIsNamedAndMinusOneMeansNone) {
  for (const char* name : {"bos", "eos", "eot", "eom", "unknown", "padding"}) {
    const std::string key = absl::StrFormat("tokenizer.ggml.%s_token_id", name);
    for (const int64_t id : {int64_t{256}, int64_t{-2}, INT64_MAX}) {
      SmallBpe bpe("gpt-2");
      bpe.Set(key, id);
      EXPECT_THAT(Tokenizer::Create(bpe.Build()),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(key)))
          << id;
    }
    SmallBpe bpe("gpt-2");
    bpe.Set(key, int64_t{0xFFFFFFFF});
    EXPECT_THAT(Tokenizer::Create(bpe.Build()), IsOk());
  }
}

TEST(TokenizerTest, TypesMustBeKnownAndFitTheTokens) {
  const Metadata m =
      Without(SmallBpe("gpt-2").Build(), "tokenizer.ggml.token_type");
  for (const IntArray& types : {IntArray(255, 1), IntArray(257, 1),
                                IntArray(256, 0), IntArray(256, 7)}) {
    Metadata bad = m;
    bad.Insert("tokenizer.ggml.token_type", types);
    EXPECT_THAT(Tokenizer::Create(bad),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("tokenizer.ggml.token_type")));
  }
  EXPECT_THAT(Tokenizer::Create(m), IsOk());
}

TEST(TokenizerTest, PiecesOfOrdinaryTextEncodeAsOneText) {
  SmallBpe bpe("gpt-2");
  const TokenId ab = bpe.Merge("a", "b");
  SmallSpm spm;
  spm.Add("\u2581a", -1);
  const TextPiece pieces[] = {
      {"a"}, {""}, {"b a", SpecialTokens::kParse}, {"b"}};
  EXPECT_THAT(Make(bpe.Build())->EncodePieces(pieces),
              ElementsAre(ab, ' ', ab));
  const auto tokenizer = Make(spm.Build());
  EXPECT_EQ(tokenizer->EncodePieces(pieces),
            tokenizer->Encode("ab ab", SpecialTokens::kAsText));
  EXPECT_THAT(tokenizer->EncodePieces({}), IsEmpty());
}

TEST(TokenizerTest, APieceSaysItselfWhetherControlTokensAreParsed) {
  SmallBpe bpe("gpt-2");
  const TokenId end = bpe.Add("<e>", TokenType::kControl);
  const TextPiece pieces[] = {{"<e>", SpecialTokens::kParse},
                              {"<e>", SpecialTokens::kAsText},
                              {"<e>", SpecialTokens::kParse}};
  EXPECT_THAT(Make(bpe.Build())->EncodePieces(pieces),
              ElementsAre(end, '<', 'e', '>', end));
}

TEST(TokenizerTest, SeveralThreadsEncodeAtOnce) {
  SmallBpe bpe("llama-bpe");
  bpe.Merge("a", "b");
  for (const Metadata& m : {bpe.Build(), SmallSpm().Build()}) {
    const auto tokenizer = Make(m);
    std::string text;
    for (int i = 0; i < 500; ++i) text += "ab 12\nabc\u00E9 ";
    const auto expected = tokenizer->Encode(text, SpecialTokens::kParse);
    std::vector<std::thread> threads;
    std::atomic<int> same = 0;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const auto ids = tokenizer->Encode(text, SpecialTokens::kParse);
        same += ids == expected && tokenizer->DecodeAll(ids) == text;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(same, 4);
  }
}

// 40,000 made-up words, as both families.
template <typename AddWord>
void ForEachWord(const AddWord& add) {
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 200; ++j) {
      add(absl::StrFormat("w%d", i), absl::StrFormat("ord%d", j));
    }
  }
}

uint64_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void ExpectHonestMemory(const Metadata& metadata) {
  if (kSanitized) {
    GTEST_SKIP() << "mallinfo2 does not see a sanitizer's allocator";
  }
  const uint64_t before = AllocatedBytes();
  const auto tokenizer = Make(metadata);
  const auto taken = static_cast<double>(AllocatedBytes() - before);
  ASSERT_GT(taken, 1e6);
  EXPECT_NEAR(static_cast<double>(tokenizer->memory_bytes()) / taken, 1.0, 0.2);
}

TEST(TokenizerTest, MemoryBytesOfBpeAreWithinAFifthOfTheHeap) {
  SmallBpe bpe("llama-bpe");
  ForEachWord(
      [&](const std::string& a, const std::string& b) { bpe.Merge(a, b); });
  ExpectHonestMemory(bpe.Build());
}

TEST(TokenizerTest, MemoryBytesOfSentencePieceAreWithinAFifthOfTheHeap) {
  SmallSpm spm;
  ForEachWord(
      [&](const std::string& a, const std::string& b) { spm.Add(a + b, -1); });
  ExpectHonestMemory(spm.Build());
}

}  // namespace
}  // namespace coldstream
