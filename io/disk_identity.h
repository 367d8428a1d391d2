// What device and file system a file lies on: for people, and as a key under
// which measurements of the disk are remembered.
//
//   const DiskIdentity disk = IdentifyDisk(*file);
//   disk.Describe();  // "ext4 on vda (254:0, serial 15666)"
//   disk.Key();       // changes when the device or the file system changes
//
// Nothing here fails: what the system does not tell is left empty. A file on
// tmpfs has no device and says so in in_memory; nor has one on overlayfs or
// NFS, where the mount's source stands in for it. Source: Linux
// Documentation/ABI/stable/sysfs-block, proc(5) "mountinfo".
#ifndef COLDSTREAM_IO_DISK_IDENTITY_H_
#define COLDSTREAM_IO_DISK_IDENTITY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "io/file.h"

namespace coldstream {

// Where the kernel shows itself; tests lay out trees of their own.
struct DiskPaths {
  std::string proc = "/proc";
  std::string sys = "/sys";
};

// A disk, or a partition of one, with the facts of the whole disk.
struct BlockDevice {
  unsigned major = 0;
  unsigned minor = 0;
  std::string name = {};    // "nvme0n1p2"
  std::string model = {};   // "" where the driver gives none, and so on below
  std::string serial = {};  // serial number, else wwid, else device-mapper uuid
  uint64_t size = 0;
  bool rotational = false;
  uint32_t logical_block = 0;
  uint64_t max_request = 0;  // largest single request to the device

  std::string Number() const;  // "254:0"
};

struct DiskIdentity {
  std::string file_system;     // "ext4"
  std::string file_system_id;  // statfs f_fsid in hex; "" if none
  std::string mount_source;    // "/dev/vda", "server:/models"; "" if unknown
  bool in_memory = false;      // tmpfs, ramfs, a RAM disk: there is no disk
  std::optional<BlockDevice> device;

  std::string Key() const;
  std::string Describe() const;
};

DiskIdentity IdentifyDisk(const File& file, const DiskPaths& paths = {});

}  // namespace coldstream

#endif  // COLDSTREAM_IO_DISK_IDENTITY_H_
