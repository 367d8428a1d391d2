#include "runtime/rate_finder.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/device_rates.h"
#include "scheduler/upload_probe.h"

namespace coldstream {
namespace {

// Of a device's record, beside its rates of computing.
constexpr char kUpload[] = "upload, a byte";

// Products and attention, or the probe's two pinned buffers.
constexpr uint64_t kHostMemory = uint64_t{160} << 20;

Status NotRemembered(const std::string& what) {
  return absl::NotFoundError(absl::StrFormat("%s is not in the profile", what));
}

// The rates that `known` has; NotFound if those are not all.
StatusOr<ComputeRates> Remembered(const Model& model,
                                  const ComputeRates::Seconds& known) {
  return ComputeRates::MeasureWith(
      {.weight_byte = [](DType, int64_t) -> StatusOr<double> {
         return NotRemembered("a product");
       },
       .attention_position = [](const LayerShape&, int64_t)
           -> StatusOr<double> { return NotRemembered("attention"); }},
      model, known);
}

}  // namespace

bool HasRoomToMeasure(const MemoryPlan& host) {
  return host.budget >= host.fixed.process + host.fixed.tokenizer + kHostMemory;
}

RateFinder::RateFinder(Profile* profile, Options options)
    : profile_(profile), options_(std::move(options)) {}

ComputeRates::Seconds RateFinder::Known(
    const std::string& key, const ComputeRates::Seconds& found) const {
  ComputeRates::Seconds known = found;
  const ComputeRecord* const record = profile_->FindCompute(key);
  if (record != nullptr && options_.measure != MeasureRates::kAll)
    known.insert(record->rates.begin(), record->rates.end());
  return known;
}

StatusOr<const ComputeRates*> RateFinder::Cpu(const Model& model) {
  const ComputeRates::Seconds known =
      Known(ComputeRates::MachineKey(options_.threads), cpu_.seconds());
  if (options_.measure == MeasureRates::kNone) {
    ASSIGN_OR_RETURN(cpu_, Remembered(model, known));
    return &cpu_;
  }
  ASSIGN_OR_RETURN(cpu_, ComputeRates::Measure(model, options_.threads, known));
  if (cpu_.seconds().size() > known.size()) measured_cpu_ = true;
  return &cpu_;
}

StatusOr<const ComputeRates*> RateFinder::Device(const Model& model) {
  const ComputeRates::Seconds known =
      Known(options_.gpu->device->name(), device_.seconds());
  if (options_.measure == MeasureRates::kNone) {
    ASSIGN_OR_RETURN(device_, Remembered(model, known));
    return &device_;
  }
  ASSIGN_OR_RETURN(device_, MeasureDeviceRates(model, *options_.gpu, known));
  if (device_.seconds().size() > known.size()) measured_device_ = true;
  return &device_;
}

StatusOr<double> RateFinder::Upload() {
  if (upload_ > 0) return upload_;
  const ComputeRates::Seconds known = Known(options_.gpu->device->name(), {});
  if (const auto found = known.find(kUpload); found != known.end()) {
    upload_ = 1 / found->second;
    return upload_;
  }
  if (options_.measure == MeasureRates::kNone)
    return NotRemembered("the rate of uploads");
  ASSIGN_OR_RETURN(const UploadProbe probe,
                   ProbeUpload(options_.gpu->device.get()));
  upload_ = probe.bytes_per_second;
  upload_doubt_ = probe.doubt;
  measured_upload_ = true;
  return upload_;
}

void RateFinder::Put(const std::string& key,
                     const ComputeRates::Seconds& rates) {
  ComputeRates::Seconds merged = rates;
  if (const ComputeRecord* const record = profile_->FindCompute(key))
    merged.insert(record->rates.begin(), record->rates.end());
  profile_->PutCompute(key, {std::move(merged), ""});
}

void RateFinder::Remember() {
  if (measured_cpu_)
    Put(ComputeRates::MachineKey(options_.threads), cpu_.seconds());
  if (measured_device_ || measured_upload_) {
    ComputeRates::Seconds rates = device_.seconds();
    if (measured_upload_) rates[kUpload] = 1 / upload_;
    Put(options_.gpu->device->name(), rates);
  }
}

}  // namespace coldstream
