// The key-value section of a GGUF header.
#ifndef COLDSTREAM_IO_GGUF_METADATA_H_
#define COLDSTREAM_IO_GGUF_METADATA_H_

#include <cstdint>

#include "base/status.h"
#include "io/gguf.h"
#include "io/header_reader.h"

namespace coldstream {

// Reads `count` pairs into out->metadata and sets out->alignment. Arrays of
// arrays are checked and passed over with a warning: nothing uses them. Errors
// as in io/gguf.h.
Status ReadGgufMetadata(uint64_t count, HeaderReader* reader, GgufFile* out);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_GGUF_METADATA_H_
