// The rates a forecast needs, measured now or remembered, and where they come
// from.
#ifndef COLDSTREAM_TOOLS_MACHINE_RATES_H_
#define COLDSTREAM_TOOLS_MACHINE_RATES_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/disk_identity.h"
#include "io/reader.h"
#include "runtime/compute_device.h"
#include "runtime/compute_rates.h"
#include "runtime/model.h"
#include "runtime/profile.h"
#include "runtime/rate_finder.h"
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
    // What is computed on; null: the CPU, or a device that is not here.
    std::shared_ptr<ComputeDevice> gpu = nullptr;
    // Plans are for a device with memory of its own.
    bool for_device = false;
    std::optional<double> upload_rate = std::nullopt;  // GB/s, from the user
    std::optional<double> vram_rate = std::nullopt;    // GB/s, from the user
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
  Status FindUploadRate();
  std::string CpuNote(const char* label) const;
  std::string DeviceNote() const;
  Status MeasureDisk(const Model& model, const DiskIdentity& disk);

  const Options options_;
  Profile profile_;
  RateFinder finder_;
  const ComputeRates* compute_ = nullptr;  // the finder's
  const ComputeRates* device_ = nullptr;
  double upload_bytes_per_second_ = 0;  // 0: not known
  double disk_bytes_per_second_ = 0;
  std::optional<Contention> contention_;  // unset: not looked for yet
  bool measured_contention_ = false;
  std::string disk_note_;
  std::vector<std::string> warnings_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_MACHINE_RATES_H_
