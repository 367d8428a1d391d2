// The C structs of coldstream.h as ours. Internal to runtime/.
//
// A struct comes from a caller built against some version of the header: its
// size says how many of our fields it has, the others get their defaults.
#ifndef COLDSTREAM_RUNTIME_C_STRUCTS_H_
#define COLDSTREAM_RUNTIME_C_STRUCTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "runtime/coldstream.h"
#include "runtime/compute_device.h"
#include "runtime/engine.h"
#include "runtime/request.h"
#include "runtime/tokenizer.h"

namespace coldstream {

// `given` may be null: all defaults. Errors: InvalidArgument (a size that no
// version has: `name`_init was not called).
template <typename Struct>
StatusOr<Struct> FromCaller(const Struct* given, void (*init)(Struct*, size_t),
                            const char* name) {
  Struct own;
  init(&own, sizeof(own));
  if (given == nullptr) return own;
  const uint32_t size = given->size;
  if (size < sizeof(uint32_t) + sizeof(void*) || size > (uint32_t{1} << 16)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: size is %d; call coldstream_%s_init first", name, size, name));
  }
  std::memcpy(&own, given, std::min<size_t>(size, sizeof(Struct)));
  return own;
}

struct CEngineOptions {
  EngineOptions engine;
  DeviceChoice device = DeviceChoice::kAuto;
};
StatusOr<CEngineOptions> EngineOptionsOf(const coldstream_options& options);

// Errors: InvalidArgument.
StatusOr<Request> RequestOf(const coldstream_request& request,
                            const Tokenizer& tokenizer);
StatusOr<Request> EmbeddingRequestOf(
    const coldstream_embedding_request& request, const Tokenizer& tokenizer);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_C_STRUCTS_H_
