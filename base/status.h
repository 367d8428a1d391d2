// Status words used in every folder.
//
// What the outside can cause (a file, a flag, the memory) is an absl::Status
// with what, where, expected, got and what to do; nothing is thrown across our
// functions. Codes: NotFound file or tensor; InvalidArgument flag or shape;
// DataLoss short or corrupt file; ResourceExhausted memory; Unavailable no
// io_uring or GPU at run time; Unimplemented not built in; Cancelled the caller
// stopped it; FailedPrecondition the model file changed under us.
//
//   ASSIGN_OR_RETURN(File file, File::Open(path));
//   RETURN_IF_ERROR(file.CheckUnchanged());
#ifndef COLDSTREAM_BASE_STATUS_H_
#define COLDSTREAM_BASE_STATUS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace coldstream {

using absl::Status;
using absl::StatusOr;

// The message as an owned std::string (Debian's absl::string_view is not
// std::string_view).
inline std::string MessageOf(const Status& status) {
  return std::string(status.message().data(), status.message().size());
}

}  // namespace coldstream

#define COLDSTREAM_CONCAT_INNER(a, b) a##b
#define COLDSTREAM_CONCAT(a, b) COLDSTREAM_CONCAT_INNER(a, b)

// `expr` is evaluated once; a Status that is not OK is returned. The names are
// counted so that a lambda inside `expr` may use the macros too.
#define RETURN_IF_ERROR(expr) \
  RETURN_IF_ERROR_IMPL(COLDSTREAM_CONCAT(status_, __COUNTER__), expr)
#define RETURN_IF_ERROR_IMPL(tmp, expr)                     \
  do {                                                      \
    if (::absl::Status tmp = (expr); !tmp.ok()) return tmp; \
  } while (false)

// `lhs` declares a variable or is one; it gets the value of the StatusOr
// `expr`, whose error is returned. Several statements: needs braces after if.
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL(COLDSTREAM_CONCAT(status_or_, __COUNTER__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr)    \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)

#endif  // COLDSTREAM_BASE_STATUS_H_
