#include "tools/preset_model.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "tools/synth_file.h"

namespace coldstream {
namespace {

// A file that has a name only while it is open.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("coldstream-plan", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // `head`, then a hole up to `size`.
  Status Fill(std::string_view head, uint64_t size) {
    if (fd_ < 0) return Error("memfd_create");
    if (ftruncate(fd_, static_cast<off_t>(size)) != 0)
      return Error("ftruncate");
    while (!head.empty()) {
      const ssize_t wrote = write(fd_, head.data(), head.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return Error("write");
      head.remove_prefix(static_cast<size_t>(wrote));
    }
    return absl::OkStatus();
  }
  std::string path() const { return absl::StrFormat("/proc/self/fd/%d", fd_); }

 private:
  static Status Error(const char* what) {
    return absl::UnavailableError(
        absl::StrFormat("a preset cannot be laid out in memory: %s: %s", what,
                        std::strerror(errno)));
  }
  const int fd_;
};

}  // namespace

StatusOr<std::shared_ptr<const Model>> OpenPresetModel(
    const SynthModel& model) {
  ASSIGN_OR_RETURN(const SynthHeader header, MakeSynthHeader(model));
  MemoryFile file;
  RETURN_IF_ERROR(file.Fill(header.bytes, header.file_bytes));
  return Model::Open({.path = file.path(), .direct = DirectMode::kOff});
}

}  // namespace coldstream
