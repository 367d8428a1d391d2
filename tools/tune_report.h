// The outcome of `coldstream tune` for people and for programs.
#ifndef COLDSTREAM_TOOLS_TUNE_REPORT_H_
#define COLDSTREAM_TOOLS_TUNE_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "tools/tune_measurement.h"

namespace coldstream {

// What became of the profile.
struct TuneSaved {
  bool dry_run = false;
  bool written = false;
  std::string path = {};  // of the profile, if there is one
};

// Tables with a row per point and a bar as long as its rate: the disk alone,
// then the curve in the order measured; the choice is marked.
std::string TuneText(const TuneMeasurement& tune, const TuneSaved& saved);

nlohmann::ordered_json TuneJson(const TuneMeasurement& tune,
                                const TuneSaved& saved);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_TUNE_REPORT_H_
