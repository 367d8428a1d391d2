// Any bytes at all must give a parsed file that keeps its promises (io/gguf.h)
// or an error of one line; never a crash, a hang or a large allocation.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "io/checkpoint.h"
#include "io/checkpoint_builder.h"
#include "io/file.h"
#include "io/gguf.h"
#include "io/split.h"

namespace coldstream {
namespace {

// The same file in memory for every input.
class Input {
 public:
  Input() : fd_(memfd_create("gguf_fuzz", MFD_CLOEXEC)) {
    CHECK(fd_ >= 0);
    path_ = "/proc/self/fd/" + std::to_string(fd_);
  }
  ~Input() { close(fd_); }
  void Set(std::span<const uint8_t> bytes) const {
    CHECK(ftruncate(fd_, 0) == 0);
    CHECK(pwrite(fd_, bytes.data(), bytes.size(), 0) ==
          static_cast<ssize_t>(bytes.size()));
  }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

void CheckMessage(const std::string& message) {
  CHECK(!message.empty());
  for (const char c : message) CHECK(static_cast<uint8_t>(c) >= 0x20);
  CHECK(message.size() < 2000);
}

void CheckTensor(const TensorInfo& tensor, const GgufFile& gguf) {
  const DTypeInfo& type = InfoOf(tensor.type);
  CHECK(!tensor.name.empty() && !tensor.shape.empty());
  CHECK(tensor.cols() > 0 && tensor.rows() > 0);
  CHECK(tensor.shape[0] % type.block_elements == 0);
  CHECK(tensor.extent.length == RowBytes(tensor.type, tensor.shape[0]) *
                                    static_cast<uint64_t>(tensor.rows()));
  CHECK(tensor.extent.offset >= gguf.data_begin);
  CHECK(tensor.extent.offset % gguf.alignment == 0);
  CHECK(tensor.extent.offset <= gguf.file->size());
  CHECK(tensor.extent.length <= gguf.file->size() - tensor.extent.offset);
}

void CheckParsed(GgufFile gguf) {
  for (const TensorInfo& tensor : gguf.tensors) CheckTensor(tensor, gguf);
  for (const auto& [key, value] : gguf.metadata.values()) {
    CHECK(!key.empty());
    CHECK(FormatMetadataValue(value, 70).size() <= 70);
  }
  CHECK(gguf.metadata.memory_bytes() < 64 * gguf.file->size() + 4096);
  for (const std::string& warning : gguf.warnings) CheckMessage(warning);
  const auto place = SplitPlaceOf(gguf);
  if (!place.ok()) CheckMessage(MessageOf(place.status()));

  const size_t tensors = gguf.tensors.size();
  CheckpointBuilder builder;
  CHECK(builder.Add(std::move(gguf)).ok());
  const Checkpoint checkpoint = std::move(builder).Build();
  CHECK(checkpoint.tensors().size() == tensors);
  for (const TensorInfo& tensor : checkpoint.tensors())
    CHECK(checkpoint.Find(tensor.name) == &tensor);
}

}  // namespace
}  // namespace coldstream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const coldstream::Input input;
  input.Set({data, size});
  auto file =
      coldstream::File::Open(input.path(), coldstream::DirectMode::kOff);
  CHECK(file.ok());
  auto parsed = coldstream::ParseGguf(*std::move(file));
  if (parsed.ok()) {
    coldstream::CheckParsed(*std::move(parsed));
  } else {
    coldstream::CheckMessage(coldstream::MessageOf(parsed.status()));
  }
  return 0;
}
