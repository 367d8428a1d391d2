#include "runtime/nfc.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace coldstream {
namespace {

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(
        static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(NfcTest, EqualsTheRecordedFormsAndTheCheckNeverMissesAChange) {
  std::ifstream file(COLDSTREAM_TEST_DATA "/golden/tokenizers/nfc_cases.txt");
  std::string text_hex, form_hex;
  int cases = 0;
  while (file >> text_hex >> form_hex) {
    const std::string text = FromHex(text_hex);
    const std::string form = FromHex(form_hex);
    ASSERT_EQ(NormalizeNfc(text), form) << text_hex << " -> " << form_hex;
    ASSERT_EQ(NormalizeNfc(form), form) << form_hex;
    if (text != form) {
      ASSERT_FALSE(IsCertainlyNfc(text)) << text_hex;
    }
    ++cases;
  }
  EXPECT_GT(cases, 4000);
}

TEST(NfcTest, OrdinaryTextInManyScriptsNeedsNoWork) {
  for (const char* text :
       {"", "plain ASCII\n", "größer naïve İ", "привет", "你好 龍",
        "안녕하세요", "こんにちは", "😀👍🏽"}) {
    EXPECT_TRUE(IsCertainlyNfc(text)) << text;
    EXPECT_EQ(NormalizeNfc(text), text);
  }
}

TEST(NfcTest, InvalidBytesStayAndBlockComposition) {
  EXPECT_EQ(NormalizeNfc("e\xFF\u0301\xC3"), "e\xFF\u0301\xC3");
  EXPECT_EQ(NormalizeNfc("\xCC"), "\xCC");
  EXPECT_EQ(NormalizeNfc("\xFF"
                         "e\u0301"),
            "\xFF\u00E9");
}

TEST(NfcTest, AMegabyteOfMarksOfFallingClassIsSortedInTime) {
  std::string text = "q";
  for (int i = 0; i < 260000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0316";
  const std::string form = NormalizeNfc(text);
  EXPECT_EQ(form.size(), text.size());
  EXPECT_EQ(form.substr(0, 5), "q\u0316\u0316");
}

}  // namespace
}  // namespace coldstream
