#include "tools/synth_tokenizer.h"

#include <map>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coldstream {
namespace {

std::map<std::string, int64_t, std::less<>> IdsOf(const StringArray& tokens) {
  std::map<std::string, int64_t, std::less<>> ids;
  for (size_t i = 0; i < tokens.size(); ++i)
    ids.emplace(tokens[i], static_cast<int64_t>(i));
  return ids;
}

TEST(SynthTokenizerTest, HasExactlyAsManyDistinctTokensAsAskedFor) {
  for (const int64_t size : {kMinSynthVocab, int64_t{259}, int64_t{1000},
                             int64_t{32000}, kMaxSynthVocab}) {
    const SynthVocabulary vocabulary = MakeSynthVocabulary(size);
    EXPECT_EQ(vocabulary.tokens.size(), static_cast<size_t>(size));
    EXPECT_EQ(vocabulary.token_types.size(), static_cast<size_t>(size));
    EXPECT_EQ(vocabulary.merges.size(),
              static_cast<size_t>(size - kMinSynthVocab));
    EXPECT_EQ(IdsOf(vocabulary.tokens).size(), static_cast<size_t>(size));
  }
}

TEST(SynthTokenizerTest, HasEveryByteUnderItsOwnCharacter) {
  const SynthVocabulary vocabulary = MakeSynthVocabulary(kMinSynthVocab);
  const auto ids = IdsOf(vocabulary.tokens);
  for (int byte = 0; byte < 256; ++byte) {
    const auto id = ids.find(ByteToVocabularyText(static_cast<uint8_t>(byte)));
    ASSERT_NE(id, ids.end()) << byte;
    EXPECT_LT(id->second, 256);
  }
  EXPECT_EQ(ByteToVocabularyText('A'), "A");
  EXPECT_EQ(ByteToVocabularyText(' '), "\u0120");
  EXPECT_EQ(ByteToVocabularyText('\n'), "\u010a");
  EXPECT_EQ(ByteToVocabularyText(0x7f), "\u0121");
  EXPECT_EQ(ByteToVocabularyText(0xad), "\u0143");
  EXPECT_EQ(ByteToVocabularyText(0xff), "\u00ff");
}

TEST(SynthTokenizerTest, EveryMergeJoinsTwoEarlierTokensIntoTheNextOne) {
  const SynthVocabulary vocabulary = MakeSynthVocabulary(40000);
  const auto ids = IdsOf(vocabulary.tokens);
  for (size_t i = 0; i < vocabulary.merges.size(); ++i) {
    const std::string_view merge = vocabulary.merges[i];
    const size_t space = merge.find(' ');
    ASSERT_NE(space, std::string_view::npos);
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    const auto id = static_cast<int64_t>(256 + i);
    ASSERT_EQ(vocabulary.tokens[256 + i],
              std::string(left) + std::string(right));
    const auto left_id = ids.find(left);
    const auto right_id = ids.find(right);
    ASSERT_NE(left_id, ids.end()) << merge;
    ASSERT_NE(right_id, ids.end()) << merge;
    ASSERT_LT(left_id->second, id) << merge;
    ASSERT_LT(right_id->second, id) << merge;
  }
}

TEST(SynthTokenizerTest, OnlyTheTwoControlTokensAreControlTokens) {
  const SynthVocabulary vocabulary = MakeSynthVocabulary(500);
  EXPECT_EQ(vocabulary.bos, 498);
  EXPECT_EQ(vocabulary.eos, 499);
  EXPECT_EQ(vocabulary.tokens[498], "<|begin_of_text|>");
  EXPECT_EQ(vocabulary.tokens[499], "<|end_of_text|>");
  for (size_t id = 0; id < 500; ++id)
    EXPECT_EQ(vocabulary.token_types[id], id >= 498 ? 3 : 1);
}

TEST(SynthTokenizerTest, ASmallVocabularyIsTheBeginningOfALargeOne) {
  const SynthVocabulary small = MakeSynthVocabulary(2000);
  const SynthVocabulary large = MakeSynthVocabulary(5000);
  for (size_t i = 0; i < small.merges.size(); ++i)
    ASSERT_EQ(small.merges[i], large.merges[i]);
}

}  // namespace
}  // namespace coldstream
