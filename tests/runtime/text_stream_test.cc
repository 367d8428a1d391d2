#include "runtime/text_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace coldstream {
namespace {

std::string StreamBytewise(std::string_view bytes,
                           std::vector<std::string> stops = {}) {
  TextStream stream(std::move(stops));
  std::string text;
  for (char byte : bytes) text += stream.Push(std::string_view(&byte, 1));
  return text + stream.Flush();
}

TEST(TextStream, PlainTextComesOutAtOnce) {
  TextStream stream;
  EXPECT_EQ(stream.Push("hello"), "hello");
  EXPECT_EQ(stream.Push(" world"), " world");
  EXPECT_EQ(stream.Flush(), "");
  EXPECT_FALSE(stream.stopped());
}

TEST(TextStream, AnEmojiCutIntoBytesComesOutWhole) {
  TextStream stream;
  EXPECT_EQ(stream.Push("a\xF0"), "a");
  EXPECT_EQ(stream.Push("\x9F"), "");
  EXPECT_EQ(stream.Push("\x98"), "");
  EXPECT_EQ(stream.Push("\x80!"), "\xF0\x9F\x98\x80!");
  EXPECT_EQ(stream.Flush(), "");
}

TEST(TextStream, AnIncompleteTailIsHeldBackThenReplacedOnce) {
  TextStream stream;
  EXPECT_EQ(stream.Push("caf\xC3"), "caf");
  EXPECT_EQ(stream.Flush(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.Flush(), "");
}

TEST(TextStream, ABrokenCharacterDoesNotSwallowTheNextOne) {
  EXPECT_EQ(StreamBytewise("\xE2\x82"
                           "A"),
            "\xEF\xBF\xBD"
            "A");
}

TEST(TextStream, AStopStringInsideOneTokenIsCutOff) {
  TextStream stream({"END"});
  EXPECT_EQ(stream.Push("the END of it"), "the ");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.Push("more"), "");
  EXPECT_EQ(stream.Flush(), "");
}

TEST(TextStream, AStopStringAcrossTokensIsNeverShownInPart) {
  TextStream stream({"</s>"});
  EXPECT_EQ(stream.Push("text<"), "text");
  EXPECT_EQ(stream.Push("/"), "");
  EXPECT_EQ(stream.Push("s"), "");
  EXPECT_EQ(stream.Push(">"), "");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStream, AFalseStartOfAStopStringComesOutLater) {
  TextStream stream({"aab"});
  EXPECT_EQ(stream.Push("aa"), "");
  EXPECT_EQ(stream.Push("a"), "a");
  EXPECT_EQ(stream.Push("c"), "aac");
  EXPECT_EQ(stream.Push("a"), "");
  EXPECT_EQ(stream.Flush(), "a");
  EXPECT_FALSE(stream.stopped());
}

TEST(TextStream, TheStopStringThatEndsFirstWins) {
  for (const std::string_view text : {"xabcdy", "abcd"}) {
    TextStream whole({"abcd", "bc"});
    const std::string at_once = whole.Push(text);
    EXPECT_EQ(at_once, text.substr(0, text.find("bc")));
    EXPECT_EQ(StreamBytewise(text, {"abcd", "bc"}), at_once);
  }
}

TEST(TextStream, OfStopStringsThatEndTogetherTheLongestWins) {
  EXPECT_EQ(StreamBytewise("xyz.", {"z", "yz"}), "x");
  TextStream whole({"z", "yz"});
  EXPECT_EQ(whole.Push("xyz."), "x");
}

TEST(TextStream, AStopStringOfOneCharacterCutIntoBytesIsFound) {
  EXPECT_EQ(StreamBytewise("hi \xF0\x9F\x98\x80 there", {"\xF0\x9F\x98\x80"}),
            "hi ");
}

TEST(TextStream, EmptyStopStringsAreIgnored) {
  EXPECT_EQ(StreamBytewise("text", {"", ""}), "text");
}

TEST(TextStream, TheTextDoesNotDependOnHowBytesAreCutIntoTokens) {
  std::mt19937 random(7);
  const std::vector<std::string> pieces = {"a",
                                           "b",
                                           "ab",
                                           "\xC3\xA9",
                                           "\xE2\x82\xAC",
                                           "\xF0\x9F\x98\x80",
                                           "\xC3",
                                           "\xE2\x82",
                                           "\xF0\x9F\x98",
                                           "\x80",
                                           "\xFF",
                                           "\xED\xA0\x80"};
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 12; ++i) bytes += pieces[random() % pieces.size()];
    const std::vector<std::string> stops = {"abab",
                                            "\xE2\x82\xAC"
                                            "a",
                                            "\x80\x80"};
    TextStream whole(stops);
    std::string expected = whole.Push(bytes);
    expected += whole.Flush();
    TextStream cut(stops);
    std::string text;
    for (size_t at = 0; at < bytes.size();) {
      const size_t n = 1 + random() % 4;
      text += cut.Push(std::string_view(bytes).substr(at, n));
      ASSERT_EQ(ReplaceInvalidUtf8(text), text) << "invalid UTF-8 came out";
      at += n;
    }
    text += cut.Flush();
    ASSERT_EQ(text, expected) << "round " << round;
    if (!whole.stopped()) {
      ASSERT_EQ(text, ReplaceInvalidUtf8(bytes));
    }
  }
}

TEST(ReplaceInvalidUtf8, KeepsValidTextOfEveryLength) {
  const std::string text =
      "z\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80"
      "\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF";
  EXPECT_EQ(ReplaceInvalidUtf8(text), text);
}

TEST(ReplaceInvalidUtf8, KeepsNulBytes) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(ReplaceInvalidUtf8(text), text);
}

TEST(ReplaceInvalidUtf8, ReplacesEachMaximalSubpartOnce) {
  const std::string r = "\xEF\xBF\xBD";
  // The example of the Unicode Standard, section 3.9, table 3-8 and following.
  EXPECT_EQ(ReplaceInvalidUtf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80"
                               "\xBF\x64"),
            "a" + r + r + r + "b" + r + "c" + r + r + "d");
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF"), r + r);          // overlong
  EXPECT_EQ(ReplaceInvalidUtf8("\xE0\x80\xAF"), r + r + r);  // overlong
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80"), r + r + r);  // surrogate
  EXPECT_EQ(ReplaceInvalidUtf8("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xFF"), r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xF0\x9F\x98"), r);  // cut off
}

}  // namespace
}  // namespace coldstream
