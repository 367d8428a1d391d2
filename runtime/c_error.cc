#include "runtime/c_error.h"

#include <cstdio>

namespace coldstream {

coldstream_code CodeOf(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return COLDSTREAM_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return COLDSTREAM_INVALID_ARGUMENT;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      return COLDSTREAM_NOT_FOUND;
    case absl::StatusCode::kResourceExhausted:
      return COLDSTREAM_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kFailedPrecondition:
      return COLDSTREAM_FAILED_PRECONDITION;
    case absl::StatusCode::kCancelled:
      return COLDSTREAM_CANCELLED;
    case absl::StatusCode::kUnavailable:
      return COLDSTREAM_UNAVAILABLE;
    case absl::StatusCode::kDataLoss:
      return COLDSTREAM_DATA_LOSS;
    case absl::StatusCode::kUnimplemented:
      return COLDSTREAM_UNIMPLEMENTED;
    default:
      return COLDSTREAM_INTERNAL;
  }
}

coldstream_code Report(coldstream_code code, const std::string& message,
                       coldstream_error* error) {
  if (error == nullptr) return code;
  error->code = code;
  std::snprintf(error->message, sizeof(error->message), "%s", message.c_str());
  return code;
}

coldstream_code Report(const Status& status, coldstream_error* error) {
  return Report(CodeOf(status), status.ok() ? "" : MessageOf(status), error);
}

}  // namespace coldstream
