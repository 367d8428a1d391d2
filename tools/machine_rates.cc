#include "tools/machine_rates.h"

#include "absl/strings/str_format.h"
#include "scheduler/disk_probe.h"

namespace coldstream {

StatusOr<MachineRates> RateSource::RatesFor(const Model& model) {
  if (disk_note_.empty()) RETURN_IF_ERROR(FindDiskRate(model));
  ASSIGN_OR_RETURN(compute_, ComputeRates::Measure(model, options_.threads,
                                                   compute_.seconds()));
  return MachineRates{&compute_, disk_bytes_per_second_};
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
  ASSIGN_OR_RETURN(const DiskProbe probe,
                   ProbeDisk(model.checkpoint().files().front(),
                             {.reader = options_.reader}));
  disk_bytes_per_second_ = probe.bytes_per_second;
  disk_note_ = absl::StrFormat(
      "%.2f GB/s, measured now (%s, %s, %d reads of %d KiB in flight)",
      probe.bytes_per_second / 1e9, probe.backend,
      probe.direct ? "direct" : "buffered", probe.depth,
      probe.chunk_bytes >> 10);
  if (!probe.doubt.empty())
    warnings_.push_back("the disk's rate is doubtful: " + probe.doubt);
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
  return text + "\n";
}

}  // namespace coldstream
