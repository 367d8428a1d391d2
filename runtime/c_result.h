// A RequestResult for C callers. Internal to runtime/.
#ifndef COLDSTREAM_RUNTIME_C_RESULT_H_
#define COLDSTREAM_RUNTIME_C_RESULT_H_

#include "runtime/coldstream.h"
#include "runtime/request.h"

namespace coldstream {

enum class CResultKind { kText, kEmbedding };
// Of what will come of it.
CResultKind KindOf(const Request& request);

// Freed by coldstream_result_free.
coldstream_result* NewCResult(RequestResult result, CResultKind kind);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_C_RESULT_H_
