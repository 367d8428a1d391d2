#include "tools/option_checks.h"

#include <string>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What the check reports for `text`, and what it makes of it.
struct Outcome {
  std::string report;
  std::string text;
};
Outcome Check(const CLI::Validator& check, std::string text) {
  Outcome outcome;
  outcome.report = check(text);
  outcome.text = text;
  return outcome;
}

TEST(OptionChecksTest, IntegerInTakesBothEndsAndNothingPastThem) {
  const CLI::Validator check = IntegerIn(1, 64);
  EXPECT_EQ(Check(check, "1").report, "");
  EXPECT_EQ(Check(check, "64").report, "");
  for (const char* text :
       {"0", "65", "-1", "", "2.5", "1e1", "12x", "99999999999999999999"})
    EXPECT_THAT(
        Check(check, text).report,
        AllOf(HasSubstr("1 to 64"), HasSubstr(absl::StrFormat("'%s'", text))));
}

TEST(OptionChecksTest, SizeInRewritesToBytes) {
  const Outcome outcome = Check(SizeIn(4096, 1 << 30, 4096), "1M");
  EXPECT_EQ(outcome.report, "");
  EXPECT_EQ(outcome.text, "1048576");
}

TEST(OptionChecksTest, SizeInReportsRangeMultipleAndNonsense) {
  const CLI::Validator check = SizeIn(4096, 1 << 30, 4096);
  EXPECT_THAT(Check(check, "1k").report,
              AllOf(HasSubstr("4.00 KiB"), HasSubstr("1.00 GiB")));
  EXPECT_THAT(Check(check, "2G").report, HasSubstr("1.00 GiB"));
  EXPECT_THAT(Check(check, "5000").report, HasSubstr("multiple of 4.00 KiB"));
  EXPECT_THAT(Check(check, "-8G").report, HasSubstr("'-8G'"));
}

TEST(OptionChecksTest, PositiveNumberRefusesZeroAndWhatIsNotFinite) {
  const CLI::Validator check = PositiveNumber();
  EXPECT_EQ(Check(check, "5e5").report, "");
  EXPECT_EQ(Check(check, "0.5").report, "");
  for (const char* text : {"0", "-1", "inf", "nan", "1e999", "", "ten"})
    EXPECT_THAT(Check(check, text).report, HasSubstr("above 0")) << text;
}

TEST(OptionChecksTest, NumberInTakesItsBoundsAndNothingOutside) {
  const CLI::Validator check = NumberIn(0, 60);
  for (const char* text : {"0", "1.5", "60"})
    EXPECT_EQ(Check(check, text).report, "") << text;
  for (const char* text : {"-0.1", "60.1", "nan", "inf", "", "ten"})
    EXPECT_THAT(Check(check, text).report, HasSubstr("from 0 to 60")) << text;
}

TEST(OptionChecksTest, OneOfRewritesToTheValueAndListsTheNames) {
  enum class Colour { kRed = 3, kGreen = 5 };
  const CLI::Validator check =
      OneOf<Colour>({{"red", Colour::kRed}, {"green", Colour::kGreen}});
  EXPECT_EQ(Check(check, "green").text, "5");
  EXPECT_THAT(Check(check, "5").report,
              AllOf(HasSubstr("red|green"), HasSubstr("'5'")));
}

}  // namespace
}  // namespace coldstream
