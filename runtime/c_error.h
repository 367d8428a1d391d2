// Failures for C callers. Internal to runtime/.
#ifndef COLDSTREAM_RUNTIME_C_ERROR_H_
#define COLDSTREAM_RUNTIME_C_ERROR_H_

#include <string>

#include "base/status.h"
#include "runtime/coldstream.h"

namespace coldstream {

coldstream_code CodeOf(const Status& status);

// Describes it in *error unless that is null; a message that is too long is cut
// short. Returns the code.
coldstream_code Report(coldstream_code code, const std::string& message,
                       coldstream_error* error);
coldstream_code Report(const Status& status, coldstream_error* error);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_C_ERROR_H_
