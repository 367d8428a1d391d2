#include "tools/batch_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Line(const std::string& id) {
  return absl::StrFormat(
      R"({"custom_id":"%s","method":"POST","url":"/v1/completions",)"
      R"("body":{"prompt":"Hello"}})",
      id);
}

class BatchInputTest : public ::testing::Test {
 protected:
  // "1:a" for a request, "2:!code" for an error.
  std::vector<std::string> Items(const std::string& contents) {
    options_.path = dir_.Write("in", contents);
    const auto input = BatchInput::Open(options_);
    EXPECT_THAT(input, IsOk());
    std::vector<std::string> items;
    while (true) {
      const auto item = (*input)->Next();
      EXPECT_THAT(item, IsOk());
      if (!item.ok() || !item->has_value()) break;
      const BatchLine& request = (*item)->request;
      items.push_back(
          absl::StrFormat("%d:%s%s", (*item)->line, request.custom_id,
                          request.error ? "!" + request.error->code : ""));
    }
    EXPECT_EQ((*input)->bytes_read(), contents.size());
    return items;
  }
  BatchCensus Census(const std::string& contents) {
    options_.path = dir_.Write("in", contents);
    const auto census = TakeBatchCensus(options_);
    EXPECT_THAT(census, IsOk());
    return census.value_or(BatchCensus{});
  }

  TempDir dir_;
  BatchInputOptions options_;
};

TEST_F(BatchInputTest, EveryLineThatIsNotBlankIsAnItem) {
  EXPECT_THAT(Items(Line("a") + "\r\n\n \t\r\nnonsense\n" + Line("b")),
              ElementsAre("1:a", "4:!invalid_json_line", "5:b"));
  EXPECT_THAT(Items(""), ElementsAre());
}

TEST_F(BatchInputTest, ALineOverTheLimitIsAnErrorWithItsLength) {
  options_.lines.most_bytes = 200;
  EXPECT_THAT(
      Items(Line("a") + "\n" + Line(std::string(300, 'x')) + "\n" +
            std::string(201, ' ') + "\n" + Line("b") + "\n"),
      ElementsAre("1:a", "2:!line_too_long", "3:!line_too_long", "4:b"));
}

TEST_F(BatchInputTest, TheSecondLineWithAnIdIsAnError) {
  EXPECT_THAT(Items(Line("a") + "\n" + Line("b") + "\n" + Line("a") + "\n" +
                    Line("a") + "\n"),
              ElementsAre("1:a", "2:b", "3:a!duplicate_custom_id",
                          "4:a!duplicate_custom_id"));
}

TEST_F(BatchInputTest, AnIdIsTakenByABadLineToo) {
  EXPECT_THAT(
      Items(R"({"custom_id": "a"})"
            "\n" +
            Line("a") + "\n"),
      ElementsAre("1:a!missing_required_parameter", "2:a!duplicate_custom_id"));
}

TEST_F(BatchInputTest, ShardsShareTheLinesAndSeeEachOthersIds) {
  const std::string contents = Line("a") + "\n\n" + Line("b") + "\n" +
                               Line("c") + "\n" + Line("b") + "\n" + Line("b") +
                               "\n";
  options_.shard = {1, 2};
  EXPECT_THAT(Items(contents),
              ElementsAre("1:a", "3:b", "5:b!duplicate_custom_id"));
  EXPECT_EQ(Census(contents).lines, 3);
  options_.shard = {2, 2};
  EXPECT_THAT(Items(contents), ElementsAre("4:c", "6:b!duplicate_custom_id"));
  EXPECT_EQ(Census(contents).lines, 2);
}

TEST_F(BatchInputTest, ACensusTellsInputsApart) {
  const std::string one = Line("a") + "\n" + Line("b") + "\n";
  EXPECT_EQ(Census(one).lines, 2);
  EXPECT_THAT(Census(one).fingerprint, HasSubstr("2 lines, "));
  EXPECT_EQ(Census(one).fingerprint, Census(one).fingerprint);
  for (const std::string& other :
       {Line("b") + "\n" + Line("a") + "\n", one + "\n", Line("a") + Line("b"),
        Line("a") + "\n" + Line("c") + "\n"})
    EXPECT_NE(Census(one).fingerprint, Census(other).fingerprint);
  options_.shard = {1, 2};
  const std::string of_shard = Census(one).fingerprint;
  options_.shard = {};
  EXPECT_EQ(Census(one).fingerprint, of_shard);
}

TEST_F(BatchInputTest, StandardInputHasNoCensusAndAMissingFileNoInput) {
  options_.path = "-";
  EXPECT_THAT(TakeBatchCensus(options_),
              StatusIs(absl::StatusCode::kInvalidArgument));
  options_.path = dir_.Path("none");
  EXPECT_THAT(BatchInput::Open(options_),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(TakeBatchCensus(options_), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace coldstream
