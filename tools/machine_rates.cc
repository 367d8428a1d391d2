#include "tools/machine_rates.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/disk_contention.h"
#include "scheduler/disk_probe.h"

namespace coldstream {
namespace {

constexpr char kComputeContention[] = "compute beside disk, times";
constexpr char kDiskContention[] = "disk beside compute, times";

}  // namespace

RateSource::RateSource(Options options)
    : options_(std::move(options)),
      profile_(Profile::Load(ProfilePlace::FromEnvironment())) {
  if (!profile_.warning().empty()) warnings_.push_back(profile_.warning());
}

StatusOr<MachineRates> RateSource::RatesFor(const Model& model) {
  if (disk_note_.empty()) RETURN_IF_ERROR(FindDiskRate(model));
  ComputeRates::Seconds known = compute_.seconds();
  const ComputeRecord* record =
      profile_.FindCompute(ComputeRates::MachineKey(options_.threads));
  if (record != nullptr && !options_.probe)
    known.insert(record->rates.begin(), record->rates.end());
  const size_t before = known.size();
  ASSIGN_OR_RETURN(compute_,
                   ComputeRates::Measure(model, options_.threads, known));
  if (compute_.seconds().size() > before) measured_compute_ = true;
  if (!contention_) RETURN_IF_ERROR(FindContention(model));
  return MachineRates{&compute_, disk_bytes_per_second_, *contention_};
}

// Kept among the rates of the machine, for models without a file too.
Status RateSource::FindContention(const Model& model) {
  const bool can_measure = options_.has_file && !options_.disk_rate;
  const ComputeRecord* record =
      profile_.FindCompute(ComputeRates::MachineKey(options_.threads));
  if (record != nullptr && !(options_.probe && can_measure)) {
    const auto compute = record->rates.find(kComputeContention);
    const auto disk = record->rates.find(kDiskContention);
    if (compute != record->rates.end() && disk != record->rates.end())
      contention_ = {compute->second, disk->second};
  }
  if (!contention_ && can_measure) {
    ASSIGN_OR_RETURN(contention_, MeasureDiskContention(model, options_.threads,
                                                        options_.reader));
    measured_compute_ = true;
  }
  if (!contention_) contention_ = Contention{};
  return absl::OkStatus();
}

void RateSource::Remember() {
  if (measured_compute_ && contention_) {
    ComputeRates::Seconds rates = compute_.seconds();
    rates[kComputeContention] = contention_->compute;
    rates[kDiskContention] = contention_->disk;
    profile_.PutCompute(ComputeRates::MachineKey(options_.threads),
                        {std::move(rates), ""});
  }
  const ProfileSave saved = profile_.Save();
  if (!saved.note.empty()) warnings_.push_back(saved.note);
}

Status RateSource::FindDiskRate(const Model& model) {
  if (options_.disk_rate) {
    disk_bytes_per_second_ = *options_.disk_rate * 1e9;
    disk_note_ = absl::StrFormat("%.2f GB/s, as given", *options_.disk_rate);
    return absl::OkStatus();
  }
  if (!options_.has_file) {
    disk_note_ =
        "not known: no file to measure on; --disk-rate X takes it in GB/s";
    return absl::OkStatus();
  }
  const DiskIdentity disk = IdentifyDisk(*model.checkpoint().files().front());
  const DiskRecord* record = profile_.FindDisk(disk.Key());
  if (record == nullptr || options_.probe) return MeasureDisk(model, disk);
  disk_bytes_per_second_ = record->bytes_per_second;
  disk_note_ = absl::StrFormat(
      "%.2f GB/s, measured %s on %s; --probe measures it now",
      record->bytes_per_second / 1e9, record->date, disk.Describe());
  return absl::OkStatus();
}

Status RateSource::MeasureDisk(const Model& model, const DiskIdentity& disk) {
  ASSIGN_OR_RETURN(const DiskProbe probe,
                   ProbeDisk(model.checkpoint().files().front(),
                             {.reader = options_.reader}));
  disk_bytes_per_second_ = probe.bytes_per_second;
  disk_note_ = absl::StrFormat(
      "%.2f GB/s, measured now on %s (%s, %s, %d reads of %d KiB in flight)",
      probe.bytes_per_second / 1e9, disk.Describe(), probe.backend,
      probe.direct ? "direct" : "buffered", probe.depth,
      probe.chunk_bytes >> 10);
  if (!probe.doubt.empty()) {
    warnings_.push_back("the disk's rate is doubtful: " + probe.doubt);
    return absl::OkStatus();
  }
  profile_.PutDisk(disk.Key(), {.bytes_per_second = probe.bytes_per_second,
                                .chunk_bytes = probe.chunk_bytes,
                                .depth = probe.depth,
                                .direct = probe.direct,
                                .registered = probe.registered,
                                .backend = probe.backend,
                                .date = ""});
  return absl::OkStatus();
}

std::string RateSource::Note() const {
  std::string text = absl::StrFormat("disk     %s\n", disk_note_);
  absl::StrAppendFormat(
      &text, "compute  %s:", ComputeRates::MachineKey(options_.threads));
  for (const auto& [name, seconds] : compute_.seconds()) {
    // One token's products: the rate at which weights are gone through.
    if (name.ends_with("/1") && !name.starts_with("attention"))
      absl::StrAppendFormat(&text, " %s %.1f GB/s",
                            name.substr(0, name.size() - 2), 1e-9 / seconds);
  }
  if (contention_ && (contention_->compute > 1 || contention_->disk > 1))
    absl::StrAppendFormat(
        &text,
        "\ntogether computing takes %.2f times as long, reading %.2f times",
        contention_->compute, contention_->disk);
  return text + "\n";
}

}  // namespace coldstream
