#include "tools/engine_status.h"

#include <unistd.h>

#include "io/disk_identity.h"
#include "runtime/profile.h"

namespace coldstream {

StatusLine::Options EngineStatus(const Engine& engine,
                                 std::optional<double> disk_ceiling) {
  StatusLine::Options options;
  options.descriptor = STDERR_FILENO;
  options.stats = [&engine] { return engine.stats(); };
  options.units_per_pass =
      static_cast<int64_t>(engine.model().weights().units.size());
  options.disk_ceiling = disk_ceiling;
  return options;
}

std::optional<double> RememberedDiskRate(const Model& model) {
  if (!CanShowStatus(STDERR_FILENO)) return std::nullopt;
  const DiskIdentity disk = IdentifyDisk(*model.checkpoint().files().front());
  const Profile profile = Profile::Load(ProfilePlace::FromEnvironment());
  const DiskRecord* record = profile.FindDisk(disk.Key());
  if (record == nullptr) return std::nullopt;
  return record->bytes_per_second;
}

}  // namespace coldstream
