// Why a line of a batch has no result, as it is written to the output.
#ifndef COLDSTREAM_TOOLS_BATCH_ERROR_H_
#define COLDSTREAM_TOOLS_BATCH_ERROR_H_

#include <string>

#include "base/status.h"

namespace coldstream {

struct BatchError {
  int status_code = 400;  // HTTP's: 4xx the line's fault, 5xx ours
  std::string code;       // one word, "invalid_value"
  std::string message;    // one line, with what was expected and what was there
  std::string param = {};  // the member at fault, "body.temperature"; or none

  friend bool operator==(const BatchError&, const BatchError&) = default;
};

// What an engine's refusal or failure is to the line that it happened to.
inline BatchError BatchErrorOf(const Status& status) {
  const bool theirs = absl::IsInvalidArgument(status) ||
                      absl::IsOutOfRange(status) || absl::IsNotFound(status) ||
                      absl::IsUnimplemented(status);
  return {.status_code = theirs ? 400 : 500,
          .code = theirs ? "invalid_request" : "server_error",
          .message = MessageOf(status)};
}

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_ERROR_H_
