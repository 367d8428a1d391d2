#include "tools/machine_rates.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/disk_contention.h"
#include "runtime/split_settings.h"
#include "scheduler/disk_probe.h"

namespace coldstream {
namespace {

constexpr char kComputeContention[] = "compute beside disk, times";
constexpr char kDiskContention[] = "disk beside compute, times";

// The rate at which one token's products go through weights, by type.
std::string WeightRates(const ComputeRates& rates) {
  std::string text;
  for (const auto& [name, seconds] : rates.seconds()) {
    if (name.ends_with("/1") && !name.starts_with("attention")) {
      absl::StrAppendFormat(&text, " %s %.1f GB/s",
                            name.substr(0, name.size() - 2), 1e-9 / seconds);
    }
  }
  return text;
}

}  // namespace

RateSource::RateSource(Options options)
    : options_(std::move(options)),
      profile_(Profile::Load(ProfilePlace::FromEnvironment())),
      finder_(&profile_, {.threads = options_.threads,
                          .gpu = options_.gpu,
                          .measure = options_.probe ? MeasureRates::kAll
                                                    : MeasureRates::kMissing}) {
  if (!profile_.warning().empty()) warnings_.push_back(profile_.warning());
}

StatusOr<MachineRates> RateSource::RatesFor(const Model& model) {
  if (disk_note_.empty()) RETURN_IF_ERROR(FindDiskRate(model));
  MachineRates rates;
  rates.links.disk = disk_bytes_per_second_;
  ASSIGN_OR_RETURN(compute_, finder_.Cpu(model));
  rates.compute = compute_;
  if (!options_.for_device) {
    if (!contention_) RETURN_IF_ERROR(FindContention(model));
    rates.links.contention = *contention_;
    return rates;
  }
  RETURN_IF_ERROR(FindUploadRate());
  rates.links.upload = upload_bytes_per_second_;
  rates.device_memory = options_.vram_rate.value_or(0) * 1e9;
  if (options_.gpu != nullptr) {
    ASSIGN_OR_RETURN(device_, finder_.Device(model));
    rates.device = device_;
  }
  return rates;
}

Status RateSource::FindUploadRate() {
  if (options_.upload_rate) {
    upload_bytes_per_second_ = *options_.upload_rate * 1e9;
  } else if (options_.gpu != nullptr && upload_bytes_per_second_ == 0) {
    ASSIGN_OR_RETURN(upload_bytes_per_second_, finder_.Upload());
    if (!finder_.upload_doubt().empty()) {
      warnings_.push_back(absl::StrFormat(
          "the rate of uploads is of memory that is not pinned (%s)",
          finder_.upload_doubt()));
    }
  }
  return absl::OkStatus();
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
    measured_contention_ = true;
  }
  if (!contention_) contention_ = Contention{};
  return absl::OkStatus();
}

void RateSource::Remember() {
  finder_.Remember();
  if (measured_contention_) {
    const std::string key = ComputeRates::MachineKey(options_.threads);
    ComputeRates::Seconds rates;
    if (const ComputeRecord* const record = profile_.FindCompute(key))
      rates = record->rates;
    rates[kComputeContention] = contention_->compute;
    rates[kDiskContention] = contention_->disk;
    profile_.PutCompute(key, {std::move(rates), ""});
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
  if (options_.for_device) return text + DeviceNote();
  text += CpuNote("compute ");
  if (contention_ && (contention_->compute > 1 || contention_->disk > 1))
    absl::StrAppendFormat(
        &text,
        "together computing takes %.2f times as long, reading %.2f times\n",
        contention_->compute, contention_->disk);
  return text;
}

std::string RateSource::CpuNote(const char* label) const {
  return absl::StrFormat("%s %s:%s\n", label,
                         ComputeRates::MachineKey(options_.threads),
                         WeightRates(*compute_));
}

std::string RateSource::DeviceNote() const {
  std::string text = "upload   ";
  if (upload_bytes_per_second_ > 0) {
    absl::StrAppendFormat(&text, "%.2f GB/s%s\n",
                          upload_bytes_per_second_ / 1e9,
                          options_.upload_rate ? ", as given" : "");
  } else {
    text += "not known: no device to measure; --h2d-rate X takes it in GB/s\n";
  }
  if (options_.gpu != nullptr) {
    absl::StrAppendFormat(&text, "compute  %s:%s\n",
                          options_.gpu->device->name(), WeightRates(*device_));
  } else if (options_.vram_rate) {
    absl::StrAppendFormat(&text,
                          "compute  as fast as %.0f GB/s of device memory, as "
                          "given; of a prompt not known\n",
                          *options_.vram_rate);
  } else {
    text +=
        "compute  not known: no device to measure; --vram-rate X takes its "
        "memory's rate in GB/s\n";
  }
  return text + CpuNote("CPU     ");
}

}  // namespace coldstream
