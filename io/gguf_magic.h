// The first bytes of a would-be GGUF file: what it is if it is something else.
#ifndef COLDSTREAM_IO_GGUF_MAGIC_H_
#define COLDSTREAM_IO_GGUF_MAGIC_H_

#include <cstdint>

#include "base/status.h"
#include "io/file.h"

namespace coldstream {

// The version (2 or 3) of a little-endian GGUF file. Errors: DataLoss for an
// empty or cut file and for a Git LFS pointer (the model is not there);
// InvalidArgument, saying what the file looks like, for all else.
StatusOr<uint32_t> ReadGgufVersion(const File& file);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_GGUF_MAGIC_H_
