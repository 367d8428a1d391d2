// How fast copies to a device can be, measured before and after a benchmark's
// runs (scheduler/upload_probe.h).
#ifndef COLDSTREAM_TOOLS_UPLOAD_CEILING_H_
#define COLDSTREAM_TOOLS_UPLOAD_CEILING_H_

#include <algorithm>
#include <optional>

#include "scheduler/upload_probe.h"

namespace coldstream {

struct UploadCeiling {
  std::optional<UploadProbe> before;
  std::optional<UploadProbe> after;

  // Bytes per second; nullopt where it was not measured.
  std::optional<double> best() const {
    std::optional<double> rate;
    for (const auto& probe : {before, after})
      if (probe) rate = std::max(rate.value_or(0), probe->bytes_per_second);
    return rate;
  }
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_UPLOAD_CEILING_H_
