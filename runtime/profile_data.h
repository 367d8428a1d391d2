// What a profile remembers: disks probed, kernels timed, settings tuned.
// The profile itself is runtime/profile.h, its text runtime/profile_json.h.
#ifndef COLDSTREAM_RUNTIME_PROFILE_DATA_H_
#define COLDSTREAM_RUNTIME_PROFILE_DATA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "io/file.h"
#include "io/reader.h"

namespace coldstream {

// A measurement of scheduler/disk_probe.h. Key: DiskIdentity::Key.
struct DiskRecord {
  double bytes_per_second = 0;
  uint64_t chunk_bytes = 0;
  int depth = 0;
  bool direct = false;
  bool registered = false;
  std::string backend;  // "uring" or "pread"
  std::string date;     // UTC, "2026-12-02T18:55:08Z", and so below
};

// Rates by name, in units that the name says. Key: ComputeKey.
struct ComputeRecord {
  std::map<std::string, double> rates;
  std::string date;
};

struct TunedKey {
  std::string disk;        // DiskIdentity::Key
  std::string model;       // ModelKey
  uint64_t ram_bytes = 0;  // of the budget
  int threads = 0;
  std::string device = {};  // its name; empty: the CPU
  uint64_t vram_bytes = 0;  // of the budget there
  int cpu_layers = 0;       // that are not the device's

  bool operator<(const TunedKey& other) const {
    return std::tie(disk, model, ram_bytes, threads, device, vram_bytes,
                    cpu_layers) <
           std::tie(other.disk, other.model, other.ram_bytes, other.threads,
                    other.device, other.vram_bytes, other.cpu_layers);
  }
};

struct TunedSettings {
  int prefetch_depth = 0;
  int io_depth = 0;
  uint64_t chunk_bytes = 0;
  IoBackendKind backend = IoBackendKind::kAuto;
  DirectMode direct = DirectMode::kAuto;
  // Measured, from disk; of uploads where a pass reads nothing; 0 where it
  // uploads nothing either.
  double bytes_per_second = 0;
  double tokens_per_second = 0;  // measured, in decode
  std::string date;
};

struct ProfileData {
  std::map<std::string, DiskRecord> disks;
  std::map<std::string, ComputeRecord> compute;
  std::map<TunedKey, TunedSettings> tuned;

  bool empty() const {
    return disks.empty() && compute.empty() && tuned.empty();
  }
  size_t size() const { return disks.size() + compute.size() + tuned.size(); }
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_PROFILE_DATA_H_
