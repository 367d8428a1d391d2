// gMock matchers for Status and StatusOr (Debian's Abseil has none).
//
//   EXPECT_THAT(File::Open(path), IsOk());
//   EXPECT_THAT(parser.Next(), IsOkAndHolds(Eq(7)));
//   EXPECT_THAT(File::Open("/none"),
//               StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
#ifndef COLDSTREAM_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define COLDSTREAM_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <gmock/gmock.h>

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace coldstream {

inline const Status& StatusOf(const Status& status) { return status; }
template <typename T>
const Status& StatusOf(const StatusOr<T>& result) {
  return result.status();
}

// OK, whatever the value.
MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  const Status& status = StatusOf(arg);
  *result_listener << status;
  return status.ok();
}

// This code, and a message that `message` matches.
MATCHER_P2(StatusIs, code, message,
           "has code " + absl::StatusCodeToString(code) +
               " and a message that " +
               ::testing::DescribeMatcher<std::string>(message)) {
  const Status& status = StatusOf(arg);
  *result_listener << status;
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, MessageOf(status),
                                       result_listener);
}

// This code, whatever the message.
inline auto StatusIs(absl::StatusCode code) {
  return StatusIs(code, ::testing::An<std::string>());
}

// OK, with a value that `value` matches.
MATCHER_P(IsOkAndHolds, value, "is OK and holds a fitting value") {
  using Value = typename std::decay_t<decltype(arg)>::value_type;
  if (!arg.ok()) {
    *result_listener << arg.status();
    return false;
  }
  return ::testing::ExplainMatchResult(
      ::testing::SafeMatcherCast<const Value&>(value), *arg, result_listener);
}

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_STATUS_MATCHERS_H_
