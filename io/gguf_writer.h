// Writes a GGUF v3 file front to back: metadata and tensors are declared, then
// the bytes of the tensors are streamed in the order of declaration.
//
// The file gets its name only when it is whole (io/atomic_file.h). What this
// writes, ParseGguf reads back.
//
//   GgufWriter writer;
//   RETURN_IF_ERROR(writer.AddMetadata("general.architecture", "llama"));
//   RETURN_IF_ERROR(writer.AddTensor("token_embd.weight", DType::kF16, {64,
//   32})); RETURN_IF_ERROR(writer.Begin(path));
//   RETURN_IF_ERROR(writer.Write(bytes));  // any number of calls, any sizes
//   RETURN_IF_ERROR(writer.Finish());
//
// Errors: InvalidArgument for what the format cannot say (name or key twice or
// empty, row length that is not whole blocks, 0 or more than 4 dimensions),
// FailedPrecondition for calls out of order and for bytes too many or too few;
// those of AtomicFile.
// Thread-safety: one caller at a time.
#ifndef COLDSTREAM_IO_GGUF_WRITER_H_
#define COLDSTREAM_IO_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/dtype.h"
#include "base/status.h"
#include "io/atomic_file.h"
#include "io/gguf.h"
#include "io/gguf_value.h"

namespace coldstream {

class GgufWriter {
 public:
  // Tensor data lies on this boundary; a power of two from 8 on. Other than the
  // default, it is written to general.alignment.
  explicit GgufWriter(uint32_t alignment = kGgufDefaultAlignment);

  Status AddMetadata(std::string_view key, const GgufValue& value);
  // Shape as in TensorInfo: shape[0] is the row length.
  Status AddTensor(std::string_view name, DType type,
                   std::span<const uint64_t> shape);
  Status AddTensor(std::string_view name, DType type,
                   std::initializer_list<uint64_t> shape) {
    return AddTensor(name, type, std::span(shape.begin(), shape.size()));
  }

  // The size the file will have, and its first bytes, up to the tensors' data.
  uint64_t file_bytes() const;
  std::string Header() const;

  // Writes the header.
  Status Begin(const std::string& path);
  // The next bytes of the tensors, back to back; padding is the writer's. Takes
  // none of them if they are more than are still to come.
  Status Write(std::span<const std::byte> bytes);
  // Fails unless every declared byte was written.
  Status Finish();

 private:
  struct Tensor {
    std::string name;
    uint64_t bytes = 0;
    uint64_t offset = 0;  // in the data
  };

  Status CheckDeclaring(const char* what, std::string_view name) const;
  uint64_t header_bytes() const;
  Status Pad(uint64_t until);

  const uint32_t alignment_;
  uint64_t pairs_ = 0;
  std::string metadata_;      // the pairs as they go to the file
  std::string descriptions_;  // the tensors likewise
  std::vector<Tensor> tensors_;
  uint64_t data_bytes_ = 0;
  absl::flat_hash_set<std::string> keys_;
  absl::flat_hash_set<std::string> names_;

  std::unique_ptr<AtomicFile> file_;
  uint64_t unwritten_ = 0;  // bytes of all tensors still to come
  size_t tensor_ = 0;       // being written
  uint64_t in_tensor_ = 0;  // bytes of it written
};

}  // namespace coldstream

#endif  // COLDSTREAM_IO_GGUF_WRITER_H_
