// What `coldstream tune` measures: the disk alone, then the model itself at
// points of the settings' space, each with an engine of its own.
//
// A point's rate is of steady decode passes: counted from the end of the first
// pass, which loads the resident weights, to the end of a later one that is not
// the last, so that as much is read ahead at the end as at the beginning.
// Memory: one engine at a time; the disk is measured before the first in no
// more than it will have. So --ram holds throughout.
#ifndef COLDSTREAM_TOOLS_TUNE_MEASUREMENT_H_
#define COLDSTREAM_TOOLS_TUNE_MEASUREMENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/disk_identity.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "runtime/profile.h"
#include "scheduler/disk_probe.h"
#include "scheduler/tuner.h"
#include "tools/stream_flags.h"

namespace coldstream {

struct TuneFlags {
  StreamFlags stream;        // what is given fixes its axis
  int passes = 2;            // of a visit, at least
  double seconds = 180;      // for the curve, about
  double probe_seconds = 3;  // for the disk alone; 0: not measured
};

struct TuneMeasurement {
  std::string model;  // path
  TunedKey key;       // of the profile
  DiskIdentity disk;  // of the first file
  uint64_t weight_bytes = 0;
  // Of the start; all 0: everything is resident.
  uint64_t pass_read_bytes = 0;
  uint64_t pass_upload_bytes = 0;
  std::optional<DiskProbe> probe;
  TuneSpace space;
  TuneResult result;                  // empty where everything is resident
  std::vector<std::string> warnings;  // of the engines, each once

  bool streams() const {
    return pass_read_bytes > 0 || pass_upload_bytes > 0;
  }
  TunedSettings Chosen() const;  // only if streams()
};

// Told what goes on, a line at a time.
using TuneProgress = std::function<void(const std::string& line)>;

// `options`: the engine's, as the flags have them; tests slow its reader.
// Errors: those of Model::Open and Engine::Create at the start.
StatusOr<TuneMeasurement> MeasureTune(const TuneFlags& flags,
                                      const EngineOptions& options,
                                      const TuneProgress& progress);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_TUNE_MEASUREMENT_H_
