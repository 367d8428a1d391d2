#include "tools/byte_size.h"

#include <string>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;

TEST(ByteSizeTest, ReadsBytesAndBinaryUnitsInAnySpelling) {
  const struct {
    const char* text;
    uint64_t bytes;
  } kCases[] = {
      {"0", 0},
      {"1", 1},
      {"4096", 4096},
      {"7b", 7},
      {"512k", 512 * 1024},
      {"512K", 512 * 1024},
      {"512kb", 512 * 1024},
      {"512KiB", 512 * 1024},
      {"512ki", 512 * 1024},
      {"1536M", uint64_t{1536} << 20},
      {"8G", uint64_t{8} << 30},
      {"4GiB", uint64_t{4} << 30},
      {"2t", uint64_t{2} << 40},
      {"1.5G", uint64_t{3} << 29},
      {"0.5k", 512},
      {"007k", 7 * 1024},
      {"9223372036854775807", (uint64_t{1} << 63) - 1},
      {"8388607t", uint64_t{8388607} << 40},
  };
  for (const auto& [text, bytes] : kCases) {
    EXPECT_THAT(ParseByteSize(text), IsOkAndHolds(bytes)) << text;
  }
}

TEST(ByteSizeTest, RefusesWhatIsNoSizeAndQuotesIt) {
  const char* const kCases[] = {
      "",    "G",   "-1",     "-8G",  "+8G",   " 8G",   "8G ",  "8 G",
      "8X",  "8GG", "8Gib1",  "8BG",  "8ki8",  "1e9",   "0x10", "1.5",
      "1.G", ".5G", "1.5.5G", "1,5G", "eight", "8gbit", "1.5b", "1.0000000001G",
  };
  for (const char* text : kCases)
    EXPECT_THAT(ParseByteSize(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrFormat("'%s'", text))));
}

TEST(ByteSizeTest, RefusesSizesThatOverflow) {
  for (const char* text :
       {"9223372036854775808", "18446744073709551616", "8388608t",
        "99999999999999999999999999", "9007199254740992k"})
    EXPECT_THAT(
        ParseByteSize(text),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too large")));
}

TEST(ByteSizeTest, FormatsWithTwoDecimalsInTheLargestUnitThatFits) {
  EXPECT_EQ(FormatByteSize(0), "0 B");
  EXPECT_EQ(FormatByteSize(1023), "1023 B");
  EXPECT_EQ(FormatByteSize(1024), "1.00 KiB");
  EXPECT_EQ(FormatByteSize(1536), "1.50 KiB");
  EXPECT_EQ(FormatByteSize((uint64_t{1} << 20) - 1), "1.00 MiB");
  EXPECT_EQ(FormatByteSize(uint64_t{1536} << 20), "1.50 GiB");
  EXPECT_EQ(FormatByteSize(UINT64_MAX), "16.00 EiB");
}

TEST(ByteSizeTest, ReadsBackWhatItFormatsOfWholeUnits) {
  for (int shift = 10; shift < 43; ++shift) {
    std::string text = FormatByteSize(uint64_t{1} << shift);
    text.erase(text.find(' '), 1);
    EXPECT_THAT(ParseByteSize(text), IsOkAndHolds(uint64_t{1} << shift))
        << text;
  }
}

}  // namespace
}  // namespace coldstream
