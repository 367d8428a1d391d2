#include "tools/disk_ceiling.h"

namespace coldstream {

std::optional<double> DiskCeiling::best() const {
  std::optional<double> best;
  for (const std::optional<DiskProbe>& probe : {before, after}) {
    if (!probe || !probe->doubt.empty()) continue;
    if (!best || probe->bytes_per_second > *best)
      best = probe->bytes_per_second;
  }
  return best;
}

}  // namespace coldstream
