// Tells a model from another one with the same tensors: ModelKey, and a
// fingerprint of all metadata and of a sample of every tensor's values.
//
// The same wherever the file lies, however it is split and whatever its dates.
// A fine-tuned or quantised anew model differs; one in which somebody changed a
// few weights by hand may not. Reads 4 KiB of each tensor, through the page
// cache. Errors: those of File::ReadExactly.
#ifndef COLDSTREAM_RUNTIME_MODEL_FINGERPRINT_H_
#define COLDSTREAM_RUNTIME_MODEL_FINGERPRINT_H_

#include <string>

#include "base/status.h"
#include "io/checkpoint.h"

namespace coldstream {

// "201 tensors, 668241696 bytes, 1f3a..., values 5c2f..."
StatusOr<std::string> ModelFingerprint(const Checkpoint& checkpoint);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_MODEL_FINGERPRINT_H_
