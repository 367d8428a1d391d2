// What the disk of a model can deliver, measured around a benchmark's runs: the
// ceiling their rates are held against. The same disk differs from one minute
// to the next, hence two probes.
//
//   DiskCeiling ceiling;
//   ASSIGN_OR_RETURN(ceiling.before, ProbeDisk(file, options));
//   ...                                        // the runs
//   ASSIGN_OR_RETURN(ceiling.after, ProbeDisk(file, options));
//   ceiling.best();
//
// Units: bytes per second.
#ifndef COLDSTREAM_TOOLS_DISK_CEILING_H_
#define COLDSTREAM_TOOLS_DISK_CEILING_H_

#include <optional>

#include "scheduler/disk_probe.h"

namespace coldstream {

struct DiskCeiling {
  std::optional<DiskProbe> before;  // nullopt: not measured
  std::optional<DiskProbe> after;

  // The better of those that are not in doubt.
  std::optional<double> best() const;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_DISK_CEILING_H_
