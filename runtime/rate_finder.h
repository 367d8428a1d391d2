// How fast the CPU, a device and the link to it are, for a model: remembered in
// a profile or, where it lacks something, measured.
//
//   RateFinder finder(&profile, {.threads = 8, .gpu = gpu});
//   ASSIGN_OR_RETURN(const ComputeRates* cpu, finder.Cpu(*model));
//   finder.Remember();   // in *profile; saving it is the caller's
//
// What was found for one model is there for the next.
// Lifetime: the profile must outlive the finder.
// Memory: see ComputeRates::Measure, MeasureDeviceRates and ProbeUpload.
#ifndef COLDSTREAM_RUNTIME_RATE_FINDER_H_
#define COLDSTREAM_RUNTIME_RATE_FINDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "runtime/compute_device.h"
#include "runtime/compute_rates.h"
#include "runtime/model.h"
#include "runtime/profile.h"
#include "scheduler/memory_plan.h"

namespace coldstream {

// A pass that brings in less is over sooner than a measurement would be.
inline constexpr uint64_t kWorthMeasuring = uint64_t{256} << 20;

// Whether a process that has only opened its model may take what measurements
// on the host take for a moment.
bool HasRoomToMeasure(const MemoryPlan& host);

enum class MeasureRates {
  kNone,     // only what is remembered
  kMissing,  // what is not remembered
  kAll,      // whatever is remembered
};

class RateFinder {
 public:
  struct Options {
    int threads = 1;                               // of the CPU
    std::shared_ptr<ComputeDevice> gpu = nullptr;  // null: no Device, no Upload
    MeasureRates measure = MeasureRates::kMissing;
  };
  RateFinder(Profile* profile, Options options);

  // Valid until the next call. Errors: NotFound (kNone, and something that the
  // model needs is not remembered); the measurement's.
  StatusOr<const ComputeRates*> Cpu(const Model& model);
  StatusOr<const ComputeRates*> Device(const Model& model);
  // Bytes per second from host memory to the device. Errors: the same.
  StatusOr<double> Upload();
  // Why the upload's rate is no ceiling; empty if it is one or was remembered.
  const std::string& upload_doubt() const { return upload_doubt_; }

  // Puts what was measured.
  void Remember();

 private:
  // What of `key` need not be measured, with what was found before.
  ComputeRates::Seconds Known(const std::string& key,
                              const ComputeRates::Seconds& found) const;
  void Put(const std::string& key, const ComputeRates::Seconds& rates);

  Profile* const profile_;
  const Options options_;
  ComputeRates cpu_;
  ComputeRates device_;
  double upload_ = 0;  // 0: not found yet
  std::string upload_doubt_;
  bool measured_cpu_ = false;
  bool measured_device_ = false;
  bool measured_upload_ = false;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_RATE_FINDER_H_
