// How fast a device takes copies from host memory: the ceiling of uploads.
//
// Units of 16 MiB from two pinned buffers to two device buffers, back to back
// on one stream, timed by the device's clock: what scheduler/uploader.h does,
// without anything to wait for.
#ifndef COLDSTREAM_SCHEDULER_UPLOAD_PROBE_H_
#define COLDSTREAM_SCHEDULER_UPLOAD_PROBE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/device.h"
#include "base/status.h"

namespace coldstream {

struct UploadProbeOptions {
  double seconds = 0.3;  // about; at least three rounds of eight copies
  size_t copy_bytes = size_t{16} << 20;
};

struct UploadProbe {
  double bytes_per_second = 0;  // of the best round
  uint64_t bytes = 0;           // copied in all
  // Why the host memory was not pinned, so that this is no ceiling; or empty.
  std::string doubt;
};

// Takes two buffers of the host's and two of the device's memory. Errors:
// ResourceExhausted, the device's.
StatusOr<UploadProbe> ProbeUpload(Device* device,
                                  const UploadProbeOptions& options = {});

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_UPLOAD_PROBE_H_
