// A checkpoint is a list of named tensors with extents, and metadata, whatever
// the container (GGUF now).
#ifndef COLDSTREAM_IO_CHECKPOINT_H_
#define COLDSTREAM_IO_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/dtype.h"
#include "base/status.h"
#include "io/file.h"
#include "io/metadata.h"

namespace coldstream {

// A run of bytes in one of the checkpoint's files.
struct Extent {
  int file = 0;  // index into Checkpoint::files
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct TensorInfo {
  std::string name;
  DType type = DType::kF32;
  // As in GGUF: shape[0] is the row length, the contiguous dimension. A weight
  // matrix y = W x is [in, out]; a vector is [n].
  std::vector<uint64_t> shape;
  Extent extent;

  int64_t cols() const { return static_cast<int64_t>(shape[0]); }
  // Product of the dimensions past the first.
  int64_t rows() const;
};

struct CheckpointOptions {
  DirectMode direct = DirectMode::kAuto;
  DirectProbe direct_probe = {};  // see File::Open
};

class Checkpoint {
 public:
  // Reads headers only. `path`: a GGUF file, any part of a split model, or the
  // folder that holds exactly one model. Errors name file, key or tensor,
  // offset, expected and got: NotFound, DataLoss (incomplete), InvalidArgument
  // (malformed, unsupported type).
  static StatusOr<Checkpoint> Open(const std::string& path,
                                   const CheckpointOptions& options = {});

  const std::vector<std::shared_ptr<File>>& files() const { return files_; }
  const Metadata& metadata() const { return metadata_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // Container name and version, e.g. "GGUF v3".
  const std::string& format() const { return format_; }
  // Things worth a line on stderr (bytes past the end, odd alignment).
  const std::vector<std::string>& warnings() const { return warnings_; }

  const TensorInfo* Find(std::string_view name) const;
  // NotFound naming the tensor.
  StatusOr<const TensorInfo*> Get(std::string_view name) const;

  uint64_t tensor_bytes() const;

  // Every file still the one that was opened (File::CheckUnchanged).
  Status CheckUnchanged() const;

 private:
  friend class CheckpointBuilder;  // io/checkpoint_builder.h

  std::vector<std::shared_ptr<File>> files_;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  absl::flat_hash_map<std::string, size_t> by_name_;
  std::string format_;
  std::vector<std::string> warnings_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_IO_CHECKPOINT_H_
