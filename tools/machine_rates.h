// The rates a forecast needs, measured now or remembered, and where they come
// from.
#ifndef COLDSTREAM_TOOLS_MACHINE_RATES_H_
#define COLDSTREAM_TOOLS_MACHINE_RATES_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/disk_identity.h"
#include "io/reader.h"
#include "runtime/compute_rates.h"
#include "runtime/model.h"
#include "runtime/profile.h"
#include "tools/forecast.h"

namespace coldstream {

class RateSource {
 public:
  struct Options {
    std::optional<double> disk_rate = std::nullopt;  // GB/s, from the user
    bool probe = false;    // measure even what is remembered
    bool has_file = true;  // the models' files are on a disk
    int threads = 1;
    ReaderOptions reader = {};
  };
  explicit RateSource(Options options);

  // Valid until the next call. Errors: the probe's, ResourceExhausted.
  StatusOr<MachineRates> RatesFor(const Model& model);

  // For people: each rate and its source, a line each.
  std::string Note() const;
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Keeps what was measured for later runs.
  void Remember();

 private:
  Status FindDiskRate(const Model& model);
  Status FindContention(const Model& model);
  Status MeasureDisk(const Model& model, const DiskIdentity& disk);

  const Options options_;
  Profile profile_;
  ComputeRates compute_;
  bool measured_compute_ = false;
  double disk_bytes_per_second_ = 0;
  std::optional<Contention> contention_;  // unset: not looked for yet
  std::string disk_note_;
  std::vector<std::string> warnings_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_MACHINE_RATES_H_
