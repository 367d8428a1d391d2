#include "base/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

Status Fail() { return absl::DataLossError("short file"); }

Status CountThenReturn(const Status& status, int* reached) {
  RETURN_IF_ERROR(status);
  ++*reached;
  return absl::OkStatus();
}

TEST(ReturnIfError, ReturnsTheErrorAndElseGoesOn) {
  int reached = 0;
  EXPECT_THAT(CountThenReturn(Fail(), &reached),
              StatusIs(absl::StatusCode::kDataLoss, Eq("short file")));
  EXPECT_EQ(reached, 0);
  EXPECT_THAT(CountThenReturn(absl::OkStatus(), &reached), IsOk());
  EXPECT_EQ(reached, 1);
}

TEST(ReturnIfError, ServesFunctionsThatReturnAValueToo) {
  const auto value = []() -> StatusOr<int> {
    RETURN_IF_ERROR(Fail());
    return 1;
  };
  EXPECT_THAT(value(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(ReturnIfError, ALambdaInsideMayUseTheMacrosToo) {
  const auto run = [](const auto& body) { return body(); };
  const auto nested = [&]() -> Status {
    RETURN_IF_ERROR(run([&]() -> Status {
      RETURN_IF_ERROR(absl::OkStatus());
      ASSIGN_OR_RETURN(const int value, StatusOr<int>(3));
      return value == 3 ? Fail() : absl::OkStatus();
    }));
    return absl::InternalError("the inner error was lost");
  };
  EXPECT_THAT(nested(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(AssignOrReturn, MovesTheValueIntoANewVariable) {
  const auto take = []() -> StatusOr<int> {
    ASSIGN_OR_RETURN(std::unique_ptr<int> owned,
                     StatusOr<std::unique_ptr<int>>(std::make_unique<int>(5)));
    return *owned;
  };
  EXPECT_THAT(take(), IsOkAndHolds(5));
}

TEST(AssignOrReturn, AssignsToAVariableThatIsThere) {
  std::string name;
  const auto assign = [&](StatusOr<std::string> value) -> Status {
    ASSIGN_OR_RETURN(name, std::move(value));
    return absl::OkStatus();
  };
  EXPECT_THAT(assign(std::string("weights")), IsOk());
  EXPECT_EQ(name, "weights");
  EXPECT_THAT(assign(Fail()), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(name, "weights");
}

TEST(MessageOf, GivesTheWholeMessage) {
  EXPECT_EQ(MessageOf(Fail()), "short file");
  EXPECT_EQ(MessageOf(absl::OkStatus()), "");
}

TEST(StatusMatchers, TellRightFromWrong) {
  const StatusOr<int> seven = 7;
  const StatusOr<int> failed = Fail();
  EXPECT_THAT(seven, IsOk());
  EXPECT_THAT(failed, Not(IsOk()));
  EXPECT_THAT(seven, Not(IsOkAndHolds(8)));
  EXPECT_THAT(failed, Not(IsOkAndHolds(7)));
  EXPECT_THAT(failed, Not(StatusIs(absl::StatusCode::kNotFound)));
  EXPECT_THAT(failed,
              Not(StatusIs(absl::StatusCode::kDataLoss, HasSubstr("long"))));
  EXPECT_THAT(seven, Not(StatusIs(absl::StatusCode::kDataLoss)));
}

}  // namespace
}  // namespace coldstream
