#include "runtime/byte_level.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace coldstream {
namespace {

TEST(ByteLevelTest, KnownSpellings) {
  EXPECT_EQ(ToByteLevel("a b"), "a\u0120b");
  EXPECT_EQ(ToByteLevel("\n\t"), "\u010A\u0109");
  EXPECT_EQ(ToByteLevel(std::string(1, '\0')), "\u0100");
  EXPECT_EQ(ToByteLevel("\xC3\xA9"), "\u00C3\u00A9");
  EXPECT_EQ(ToByteLevel("\x7F\xA0\xAD"), "\u0121\u0142\u0143");
}

TEST(ByteLevelTest, EveryByteHasASpellingOfItsOwnAndComesBack) {
  std::set<std::string> spellings;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    const std::string spelled = ToByteLevel(bytes);
    spellings.insert(spelled);
    std::string back = "kept ";
    ASSERT_TRUE(FromByteLevel(spelled, &back)) << byte;
    EXPECT_EQ(back, "kept " + bytes);
  }
  EXPECT_EQ(spellings.size(), 256u);
}

TEST(ByteLevelTest, TextOutsideTheMapIsRefusedAndNothingIsAppended) {
  for (const std::string text : {"a b", "ab\u0144", "a\u4F60", "a\xFF", "\n"}) {
    std::string bytes = "x";
    EXPECT_FALSE(FromByteLevel(text, &bytes)) << text;
    EXPECT_EQ(bytes, "x");
  }
}

}  // namespace
}  // namespace coldstream
