// What the kernel says was read: by a block device, and by this process. The
// word against which our own byte counts are checked.
//
// Both count bytes that came from a device: what the page cache answered is in
// neither. The device's count is everybody's, this process's is its own, and
// tmpfs and network file systems may show in neither.
// Errors: NotFound (no such device, no /proc), DataLoss (not a number there).
// Source: Linux Documentation/block/stat.rst; proc(5) "/proc/pid/io".
#ifndef COLDSTREAM_IO_DISK_COUNTERS_H_
#define COLDSTREAM_IO_DISK_COUNTERS_H_

#include <cstdint>

#include "base/status.h"
#include "io/disk_identity.h"

namespace coldstream {

// Since the system started.
StatusOr<uint64_t> DeviceReadBytes(const BlockDevice& device,
                                   const DiskPaths& paths = {});

// Since the process started, threads that ended included.
StatusOr<uint64_t> ProcessReadBytes(const DiskPaths& paths = {});

}  // namespace coldstream

#endif  // COLDSTREAM_IO_DISK_COUNTERS_H_
