#include "io/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace coldstream {
namespace {

TEST(PrintableTest, KeepsWellFormedText) {
  EXPECT_EQ(Printable("", 100), "");
  EXPECT_EQ(Printable("blk.0.attn_q.weight", 100), "blk.0.attn_q.weight");
  const std::string utf8 = "\xC3\xA9\xE2\x96\x81\xF0\x9F\x98\x80";
  EXPECT_EQ(Printable(utf8, 100), utf8);
}

TEST(PrintableTest, EscapesControlCharactersAndWhatIsNotUtf8) {
  EXPECT_EQ(Printable("a\n\r\t\\b", 100), "a\\n\\r\\t\\\\b");
  EXPECT_EQ(Printable(std::string("\0\x1b\x7f", 3), 100), "\\x00\\x1b\\x7f");
  // C1 controls, an overlong form, a surrogate, past U+10FFFF, cut short.
  EXPECT_EQ(Printable("\xC2\x9B", 100), "\\xc2\\x9b");
  EXPECT_EQ(Printable("\xC0\xAF", 100), "\\xc0\\xaf");
  EXPECT_EQ(Printable("\xED\xA0\x80", 100), "\\xed\\xa0\\x80");
  EXPECT_EQ(Printable("\xF4\x90\x80\x80", 100), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(Printable("\xE2\x96", 100), "\\xe2\\x96");
}

TEST(PrintableTest, CutsBetweenCharactersAndSaysSo) {
  EXPECT_EQ(Printable("0123456789", 10), "0123456789");
  EXPECT_EQ(Printable("0123456789x", 10), "0123456...");
  // Never inside a character or an escape.
  EXPECT_EQ(Printable("ab\xE2\x96\x81xyz", 7), "ab...");
  EXPECT_EQ(Printable("ab\n\n\n\n", 6), "ab...");
  EXPECT_EQ(Printable("abcdef", 2), "..");
  EXPECT_EQ(Printable("abcdef", 0), "");
}

}  // namespace
}  // namespace coldstream
