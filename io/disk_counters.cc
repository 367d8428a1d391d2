#include "io/disk_counters.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace coldstream {
namespace {

Status CannotOpen(const std::string& path) {
  return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
}

}  // namespace

StatusOr<uint64_t> DeviceReadBytes(const BlockDevice& device,
                                   const DiskPaths& paths) {
  const std::string path =
      absl::StrCat(paths.sys, "/dev/block/", device.Number(), "/stat");
  std::ifstream file(path);
  if (!file) return CannotOpen(path);
  // Reads, reads merged, sectors read. A sector is 512 bytes on every device.
  uint64_t reads = 0, merged = 0, sectors = 0;
  if (file >> reads >> merged >> sectors) return sectors * 512;
  return absl::DataLossError(
      absl::StrCat(path, ": expected three numbers or more"));
}

StatusOr<uint64_t> ProcessReadBytes(const DiskPaths& paths) {
  const std::string path = absl::StrCat(paths.proc, "/self/io");
  std::ifstream file(path);
  if (!file) return CannotOpen(path);
  std::string word;
  uint64_t bytes = 0;
  while (file >> word) {
    if (word == "read_bytes:" && file >> bytes) return bytes;
  }
  return absl::DataLossError(absl::StrCat(path, ": expected read_bytes: N"));
}

}  // namespace coldstream
