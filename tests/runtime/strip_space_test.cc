#include "runtime/strip_space.h"

#include <gtest/gtest.h>

#include <string>

namespace coldstream {
namespace {

TEST(StripSpaceTest, TakesWhiteSpaceOffBothEndsOnly) {
  EXPECT_EQ(StripSpace(" \t\r\n a b \v\f"), "a b");
  EXPECT_EQ(StripSpace("a"), "a");
  EXPECT_EQ(StripSpace(""), "");
  EXPECT_EQ(StripSpace(" \n "), "");
}

TEST(StripSpaceTest, WhiteSpaceIsAllOfPythons) {
  for (const char* space :
       {"\x1C", "\x1F", "\u0085", "\u00A0", "\u1680", "\u2000", "\u200A",
        "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"}) {
    EXPECT_EQ(StripSpace(std::string(space) + "a" + space), "a") << space;
  }
  // A zero-width space and a byte order mark are none.
  for (const char* other : {"\u200B", "\uFEFF", "\x1B", "\u2800"}) {
    const std::string text = std::string(other) + "a" + other;
    EXPECT_EQ(StripSpace(text), text) << other;
  }
}

TEST(StripSpaceTest, BytesThatAreNotUtf8AreText) {
  EXPECT_EQ(StripSpace(" \x85 "), "\x85");
  EXPECT_EQ(StripSpace(" \xE2\x80 "), "\xE2\x80");
  EXPECT_EQ(StripSpace("\x80\x80\x80\x80\x80"), "\x80\x80\x80\x80\x80");
}

}  // namespace
}  // namespace coldstream
