#include "io/disk_identity.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string_view>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "io/direct_alignment.h"
#include "io/printable.h"

namespace coldstream {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxWord = 160;  // of a name from outside

// The first line of the first of these files that has one; made printable,
// since a serial number is whatever the vendor burnt in.
std::string FirstWords(const fs::path& folder,
                       std::initializer_list<const char*> names) {
  for (const char* name : names) {
    std::ifstream file(folder / name);
    std::string line;
    if (!std::getline(file, line)) continue;
    absl::StripAsciiWhitespace(&line);
    if (!line.empty()) return Printable(line, kMaxWord);
  }
  return "";
}

uint64_t Number(const fs::path& folder, const char* name) {
  uint64_t value = 0;
  return absl::SimpleAtoi(FirstWords(folder, {name}), &value) ? value : 0;
}

std::optional<BlockDevice> FindBlockDevice(dev_t number,
                                           const DiskPaths& paths) {
  BlockDevice device;
  device.major = major(number);
  device.minor = minor(number);
  std::error_code error;
  const fs::path folder = fs::canonical(
      fs::path(paths.sys) / "dev" / "block" / device.Number(), error);
  if (error) return std::nullopt;
  // A partition's folder lies in its disk's, which has the queue.
  const fs::path disk =
      fs::exists(folder / "partition", error) ? folder.parent_path() : folder;
  device.name = folder.filename().string();
  device.model = FirstWords(disk, {"device/model", "device/name"});
  device.serial = FirstWords(
      disk, {"serial", "device/serial", "wwid", "device/wwid", "dm/uuid",
             "md/uuid", "loop/backing_file", "device/cid"});
  device.size = Number(folder, "size") * 512;  // sectors, whatever the block
  device.rotational = Number(disk, "queue/rotational") != 0;
  device.logical_block =
      static_cast<uint32_t>(Number(disk, "queue/logical_block_size"));
  device.max_request = Number(disk, "queue/max_sectors_kb") * 1024;
  return device;
}

// mountinfo writes a blank as \040.
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 3 < text.size();
    if (!escape) {
      out += text[i];
      continue;
    }
    out += static_cast<char>((text[i + 1] - '0') * 64 +
                             (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

// The number of the mount that a descriptor was opened through.
std::string MountOf(int fd, const DiskPaths& paths) {
  std::ifstream info(
      absl::StrCat(paths.proc, "/self/fdinfo/", std::to_string(fd)));
  std::string word;
  while (info >> word) {
    if (word == "mnt_id:" && info >> word) return word;
  }
  return "";
}

// The source of that mount: "36 35 98:0 / /mnt rw - ext3 /dev/root rw".
std::string MountSource(int fd, const DiskPaths& paths) {
  const std::string mount = MountOf(fd, paths);
  if (mount.empty()) return "";
  std::ifstream mounts(absl::StrCat(paths.proc, "/self/mountinfo"));
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word != mount) continue;
    while (words >> word) {
      if (word == "-" && words >> word && words >> word)
        return Printable(Unescape(word), kMaxWord);
    }
  }
  return "";
}

// The device of the file, or, where the file system numbers its own (btrfs), of
// the mount's source: the first of several.
std::optional<BlockDevice> DeviceOf(dev_t of_file, const std::string& source,
                                    const DiskPaths& paths) {
  if (major(of_file) != 0) return FindBlockDevice(of_file, paths);
  struct stat info = {};
  if (!absl::StartsWith(source, "/") || stat(source.c_str(), &info) != 0 ||
      !S_ISBLK(info.st_mode))
    return std::nullopt;
  return FindBlockDevice(info.st_rdev, paths);
}

bool IsRamDisk(const BlockDevice& device) {
  for (const std::string_view prefix : {"ram", "zram"}) {
    if (device.name.size() > prefix.size() &&
        device.name.compare(0, prefix.size(), prefix) == 0 &&
        absl::ascii_isdigit(
            static_cast<unsigned char>(device.name[prefix.size()])))
      return true;
  }
  return false;
}

std::string FileSystemId(const struct statfs& info) {
  uint64_t id = 0;
  static_assert(sizeof(info.f_fsid) == sizeof(id));
  std::memcpy(&id, &info.f_fsid, sizeof(id));
  return id == 0 ? "" : absl::StrFormat("%016x", id);
}

}  // namespace

std::string BlockDevice::Number() const {
  return absl::StrFormat("%d:%d", major, minor);
}

DiskIdentity IdentifyDisk(const File& file, const DiskPaths& paths) {
  DiskIdentity disk;
  const int fd = file.buffered_fd();
  disk.file_system = FileSystemName(fd);
  disk.in_memory = disk.file_system == "tmpfs" || disk.file_system == "ramfs";
  struct statfs system = {};
  if (fstatfs(fd, &system) == 0) disk.file_system_id = FileSystemId(system);
  disk.mount_source = MountSource(fd, paths);
  struct stat info = {};
  if (disk.in_memory || fstat(fd, &info) != 0) return disk;
  disk.device = DeviceOf(info.st_dev, disk.mount_source, paths);
  if (disk.device && IsRamDisk(*disk.device)) disk.in_memory = true;
  return disk;
}

std::string DiskIdentity::Key() const {
  std::string key = file_system;
  // All memory is alike, and its ids are drawn anew at every mount.
  if (in_memory && !device) return key;
  if (!file_system_id.empty()) absl::StrAppend(&key, " ", file_system_id);
  if (!device) return absl::StrCat(key, " from ", mount_source);
  const BlockDevice& block = *device;
  // Device numbers are dealt in the order of discovery: only for devices with
  // no number of their own.
  absl::StrAppend(&key, " on ", block.model.empty() ? "disk" : block.model, " ",
                  block.serial.empty() ? block.Number() : block.serial);
  return absl::StrFormat("%s, %d bytes, block %d, request %d%s", key,
                         block.size, block.logical_block, block.max_request,
                         block.rotational ? ", rotational" : "");
}

std::string DiskIdentity::Describe() const {
  if (!device) {
    if (in_memory) return absl::StrCat(file_system, " (in memory, no disk)");
    if (mount_source.empty() || mount_source == file_system) return file_system;
    return absl::StrCat(file_system, " from ", mount_source);
  }
  std::string text =
      absl::StrCat(file_system, " on ", device->name, " (", device->Number());
  if (!device->model.empty()) absl::StrAppend(&text, ", ", device->model);
  if (!device->serial.empty())
    absl::StrAppend(&text, ", serial ", device->serial);
  if (in_memory) absl::StrAppend(&text, ", in memory");
  return text + ")";
}

}  // namespace coldstream
