#include "runtime/automatic_settings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "io/disk_identity.h"
#include "runtime/engine_plan.h"
#include "runtime/profile_keys.h"
#include "runtime/rate_finder.h"
#include "runtime/split_settings.h"
#include "scheduler/disk_probe.h"

namespace coldstream {
namespace {

constexpr uint64_t kProbeMemory = uint64_t{64} << 20;
constexpr uint64_t kLeastProbeMemory = uint64_t{8} << 20;

void Apply(int io_depth, uint64_t chunk_bytes, const FixedSettings& fixed,
           EngineOptions* options) {
  if (!fixed.io_depth) options->reader.depth = io_depth;
  if (!fixed.io_chunk) options->reader.chunk_bytes = chunk_bytes;
}

void ApplyTuned(const TunedSettings& tuned, const FixedSettings& fixed,
                EngineOptions* options) {
  Apply(tuned.io_depth, tuned.chunk_bytes, fixed, options);
  if (!fixed.prefetch_depth) options->prefetch_depth = tuned.prefetch_depth;
  if (!fixed.io_backend) options->reader.backend = tuned.backend;
}

// What a measurement may take: the engine's memory is not there yet, the
// process and the tokenizer are.
uint64_t ProbeMemory(const MemoryPlan& plan) {
  const uint64_t taken = plan.fixed.process + plan.fixed.tokenizer;
  if (plan.budget <= taken) return 0;
  return std::min(kProbeMemory, (plan.budget - taken) / 2);
}

// Measures the disk and remembers it; false where that came to nothing.
StatusOr<bool> ProbeAndRemember(const Model& model, const EnginePlan& plan,
                                const std::string& disk_key, Profile* profile,
                                AutomaticSettings* chosen) {
  const uint64_t memory = ProbeMemory(plan.memory);
  if (memory < kLeastProbeMemory) return false;
  const StatusOr<DiskProbe> probe = ProbeDisk(
      model.checkpoint().files().front(), {.memory_bytes = memory,
                                           .reader = plan.options.reader,
                                           .cancel = plan.options.cancel});
  if (probe.status().code() == absl::StatusCode::kCancelled)
    return probe.status();
  if (!probe.ok() || !probe->doubt.empty()) return false;
  profile->PutDisk(disk_key, {.bytes_per_second = probe->bytes_per_second,
                              .chunk_bytes = probe->chunk_bytes,
                              .depth = probe->depth,
                              .direct = probe->direct,
                              .registered = probe->registered,
                              .backend = probe->backend,
                              .date = ""});
  chosen->note = profile->Save().note;
  return true;
}

// How weights are read, and the slots they go to.
Status ChooseStream(const Model& model, const EnginePlan& plan,
                    const FixedSettings& fixed, Profile* profile,
                    AutomaticSettings* chosen) {
  const DiskIdentity disk = IdentifyDisk(*model.checkpoint().files().front());
  if (disk.in_memory) return absl::OkStatus();
  const std::string key = disk.Key();
  const TunedSettings* tuned =
      profile->FindTuned(TunedKeyOf(key, model.checkpoint(), plan.options));
  // What suits reads through the page cache says nothing of direct ones.
  if (tuned != nullptr && (tuned->direct != DirectMode::kOff ||
                           !model.checkpoint().files().front()->direct())) {
    ApplyTuned(*tuned, fixed, &chosen->options);
    chosen->source = SettingsSource::kTuned;
    return absl::OkStatus();
  }
  if (plan.memory.pass_read_bytes == 0) return absl::OkStatus();
  if (fixed.io_depth && fixed.io_chunk) return absl::OkStatus();
  const DiskRecord* record = profile->FindDisk(key);
  if (record != nullptr) {
    chosen->source = SettingsSource::kProbe;
  } else if (plan.memory.pass_read_bytes >= kWorthMeasuring) {
    ASSIGN_OR_RETURN(const bool measured,
                     ProbeAndRemember(model, plan, key, profile, chosen));
    if (measured) {
      record = profile->FindDisk(key);
      chosen->source = SettingsSource::kProbeNow;
    }
  }
  if (record != nullptr)
    Apply(record->depth, record->chunk_bytes, fixed, &chosen->options);
  return absl::OkStatus();
}

}  // namespace

const char* SettingsSourceName(SettingsSource source) {
  switch (source) {
    case SettingsSource::kDefault:
      return "default";
    case SettingsSource::kTuned:
      return "tuned";
    case SettingsSource::kProbe:
      return "disk measured earlier";
    case SettingsSource::kProbeNow:
      return "disk measured now";
  }
  return "";
}

StatusOr<AutomaticSettings> ChooseSettings(const Model& model,
                                           const EngineOptions& options,
                                           const FixedSettings& fixed,
                                           Profile* profile) {
  AutomaticSettings chosen{options, SettingsSource::kDefault, ""};
  ASSIGN_OR_RETURN(const EnginePlan plan, PlanEngine(model, options));
  const bool uploads = plan.vram && plan.vram->pass_read_bytes > 0;
  if (plan.memory.pass_read_bytes == 0 && !uploads) return chosen;
  RETURN_IF_ERROR(ChooseStream(model, plan, fixed, profile, &chosen));
  if (!uploads) return chosen;
  ASSIGN_OR_RETURN(chosen.options.split_rates,
                   FindSplitRates(model, options, plan, profile));
  if (const std::string note = profile->Save().note; !note.empty())
    chosen.note = note;
  return chosen;
}

}  // namespace coldstream
