#include "runtime/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace coldstream {
namespace {

TEST(Utf8Test, EveryCharacterSurvivesEncodingAndDecoding) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(code, &text);
    const Utf8Char c = DecodeUtf8(text, 0);
    ASSERT_TRUE(c.valid) << std::hex << static_cast<uint32_t>(code);
    ASSERT_EQ(c.code, code);
    ASSERT_EQ(c.length, text.size());
  }
}

TEST(Utf8Test, OverlongSurrogateTooLargeAndCutSequencesAreSingleBytes) {
  for (const std::string text :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80", "\x80",
        "\xE2\x82", "\xF0\x9F\x98", "\xC3("}) {
    const Utf8Char c = DecodeUtf8(text, 0);
    EXPECT_FALSE(c.valid) << testing::PrintToString(text);
    EXPECT_EQ(c.length, 1u);
    EXPECT_EQ(c.code, static_cast<uint8_t>(text[0]));
  }
}

TEST(Utf8Test, TheValidPrefixEndsAtTheFirstBadByte) {
  EXPECT_EQ(ValidUtf8Prefix(""), 0u);
  EXPECT_EQ(ValidUtf8Prefix("abc"), 3u);
  EXPECT_EQ(ValidUtf8Prefix("a\xC3\xA9\xF0\x9F\x98\x80"), 7u);
  EXPECT_EQ(ValidUtf8Prefix("a\xC3\xA9\xF0\x9F\x98"), 3u);
  EXPECT_EQ(ValidUtf8Prefix("\xFF"), 0u);
}

}  // namespace
}  // namespace coldstream
