#include "io/direct_alignment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/host_memory.h"

namespace coldstream {
namespace {

constexpr uint32_t kSmallest = 512;
constexpr uint32_t kLargest = 65536;

// What statx says, nullopt if it says nothing. Unavailable if it says that
// direct reads are not possible.
StatusOr<std::optional<DirectAlignment>> AskKernel(int fd) {
#ifdef STATX_DIOALIGN
  struct statx info = {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 &&
      (info.stx_mask & STATX_DIOALIGN) != 0) {
    if (info.stx_dio_offset_align == 0) {
      return absl::UnavailableError("it does not support O_DIRECT here");
    }
    const DirectAlignment alignment{info.stx_dio_mem_align,
                                    info.stx_dio_offset_align};
    if (std::has_single_bit(alignment.memory) &&
        std::has_single_bit(alignment.offset) && alignment.memory <= kLargest &&
        alignment.offset <= kLargest) {
      return alignment;
    }
  }
#else
  (void)fd;
#endif
  return std::nullopt;
}

Status Refused(int error) {
  return absl::UnavailableError(
      absl::StrFormat("reading with O_DIRECT: %s", std::strerror(error)));
}

}  // namespace

StatusOr<DirectAlignment> SearchDirectAlignment(uint64_t size,
                                                const DirectReadTrial& trial) {
  // Reads one block at an odd multiple of the block where the file is long
  // enough, so that success means this alignment and no larger one.
  const auto offset_for = [size](uint64_t block) {
    return size > block ? block : uint64_t{0};
  };
  DirectAlignment found;
  int error = EINVAL;
  for (found.offset = kSmallest; found.offset <= kLargest; found.offset *= 2) {
    error = trial(0, found.offset, offset_for(found.offset));
    if (error != EINVAL) break;
  }
  if (error != 0) return Refused(error);
  for (found.memory = kSmallest; found.memory < kLargest; found.memory *= 2) {
    if (trial(found.memory, found.offset, offset_for(found.offset)) == 0) break;
  }
  return found;
}

StatusOr<DirectAlignment> ProbeDirectAlignment(int direct_fd, uint64_t size) {
  ASSIGN_OR_RETURN(const std::optional<DirectAlignment> told,
                   AskKernel(direct_fd));
  if (size == 0) return told.value_or(DirectAlignment{});

  // Room for a block at any memory offset from a base aligned to 2 * kLargest.
  ASSIGN_OR_RETURN(HostMemory memory,
                   HostMemory::Allocate(5 * kLargest, "probing direct I/O"));
  const uintptr_t address = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t skip = (2 * kLargest - address % (2 * kLargest));
  const DirectReadTrial trial = [&](uint64_t memory_offset, uint64_t length,
                                    uint64_t offset) {
    std::byte* to = memory.data() + skip % (2 * kLargest) + memory_offset;
    ssize_t got = 0;
    do {
      got = pread(direct_fd, to, length, static_cast<off_t>(offset));
    } while (got < 0 && errno == EINTR);
    return got < 0 ? errno : 0;
  };
  if (told.has_value()) {
    const int error = trial(told->memory, told->offset, 0);
    if (error == 0) return *told;
    if (error != EINVAL) return Refused(error);
  }
  return SearchDirectAlignment(size, trial);
}

std::string FileSystemName(int fd) {
  struct statfs info = {};
  if (fstatfs(fd, &info) != 0) return "unknown file system";
  struct Named {
    uint64_t magic;
    const char* name;
  };
  // Numbers: linux/magic.h, and the sources of those not listed there.
  static constexpr Named kNames[] = {
      {EXT4_SUPER_MAGIC, "ext4"},
      {XFS_SUPER_MAGIC, "xfs"},
      {BTRFS_SUPER_MAGIC, "btrfs"},
      {TMPFS_MAGIC, "tmpfs"},
      {RAMFS_MAGIC, "ramfs"},
      {OVERLAYFS_SUPER_MAGIC, "overlay"},
      {SQUASHFS_MAGIC, "squashfs"},
      {NFS_SUPER_MAGIC, "nfs"},
      {FUSE_SUPER_MAGIC, "fuse"},
      {F2FS_SUPER_MAGIC, "f2fs"},
      {EXFAT_SUPER_MAGIC, "exfat"},
      {MSDOS_SUPER_MAGIC, "vfat"},
      {ISOFS_SUPER_MAGIC, "iso9660"},
      {V9FS_MAGIC, "9p"},
      {CIFS_SUPER_MAGIC, "cifs"},
      {SMB2_SUPER_MAGIC, "smb2"},
      {CEPH_SUPER_MAGIC, "ceph"},
      {EROFS_SUPER_MAGIC_V1, "erofs"},
      {ECRYPTFS_SUPER_MAGIC, "ecryptfs"},
      {0x2FC12FC1, "zfs"},
      {0x5346544E, "ntfs"},
      {0x7366746E, "ntfs3"},
      {0x0BD00BD0, "lustre"},
      {0xCA451A4E, "bcachefs"},
  };
  const uint64_t magic = static_cast<uint32_t>(info.f_type);
  for (const Named& row : kNames)
    if (row.magic == magic) return row.name;
  return absl::StrFormat("file system 0x%X", magic);
}

}  // namespace coldstream
