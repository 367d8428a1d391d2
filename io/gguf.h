// One GGUF file (v2 or v3, little-endian), headers only.
//
// Invariant of a parsed file: keys and tensor names are unique; every tensor
// has a supported type, 1..4 dimensions of at least 1, a first dimension that
// is whole blocks, and bytes that lie inside the file, past the header, on the
// file's alignment, and overlap no other tensor's.
//
// Errors, one line each with file, key or tensor, offset, expected and got:
// DataLoss (incomplete, a Git LFS pointer), InvalidArgument (not GGUF, other
// version or byte order, unsupported type, malformed).
// Source: GGUF format specification (ggml, docs/gguf.md); failure cases
// H11-H16.
#ifndef COLDSTREAM_IO_GGUF_H_
#define COLDSTREAM_IO_GGUF_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/checkpoint.h"
#include "io/file.h"
#include "io/metadata.h"

namespace coldstream {

// GGUF value type ids.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

inline constexpr uint32_t kGgufDefaultAlignment = 32;
inline constexpr size_t kGgufMaxNameBytes = 65535;
inline constexpr uint32_t kGgufMaxDims = 4;

struct GgufFile {
  std::shared_ptr<File> file;
  uint32_t version = 0;
  uint32_t alignment = kGgufDefaultAlignment;
  uint64_t data_begin = 0;  // offset of the tensor data
  Metadata metadata;
  std::vector<TensorInfo> tensors;  // extent.file is 0
  std::vector<std::string> warnings;
};

StatusOr<GgufFile> ParseGguf(std::shared_ptr<File> file);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_GGUF_H_
