// What `coldstream bench` measures: a model's prompt and generation, run after
// run on one engine, each with the engine's, the kernel's and the devices'
// counts of what it took.
//
// The first pass of all loads the resident weights: it belongs to the warm-up.
// Ceilings are measured before the engine is made and after it is gone, in the
// memory that it is to take or has given back: --ram holds throughout. The
// disk's is not measured where no weights are read from it, that of uploads
// where none are uploaded.
#ifndef COLDSTREAM_TOOLS_BENCH_MEASUREMENT_H_
#define COLDSTREAM_TOOLS_BENCH_MEASUREMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/automatic_settings.h"
#include "scheduler/memory_plan.h"
#include "tools/bench_flags.h"
#include "tools/disk_ceiling.h"
#include "tools/phase_sample.h"
#include "tools/split_share.h"
#include "tools/upload_ceiling.h"

namespace coldstream {

struct BenchMeasurement {
  // The setting.
  std::string model;
  std::string architecture;
  uint64_t weight_bytes = 0;          // touched by a pass
  MemoryPlan plan;                    // of host memory
  std::string device;                 // "cpu", or the card's name
  std::string device_fallback;        // why the CPU, if that was automatic
  std::optional<MemoryPlan> vram;     // nullopt: the CPU computes
  std::optional<SplitSummary> split;  // of the two
  uint64_t pinned_bytes = 0;
  std::string disk;        // for people; of the largest file
  bool in_memory = false;  // a file of the model lies on tmpfs or the like
  std::string io_backend;
  bool direct = false;  // every file, after the last run
  int io_depth = 0;
  uint64_t io_chunk = 0;
  int prefetch_depth = 0;
  SettingsSource settings = SettingsSource::kDefault;  // of the three above
  int64_t batch_tokens = 0;
  int64_t sequences = 1;
  int threads = 0;
  std::string isa;
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  int warmup = 0;

  // The page cache: what share of the files it held, 0 to 1, before the first
  // measured run and after the last; nullopt: the kernel does not tell.
  CacheState cache = CacheState::kAsFound;
  std::optional<double> cached_before;
  std::optional<double> cached_after;

  std::vector<BenchRun> runs;
  DiskCeiling disk_ceiling;
  // Of the memory that is computed from, bytes per second.
  std::optional<double> memory_ceiling;
  UploadCeiling upload_ceiling;
  uint64_t peak_rss = 0;
};

// Errors: those of Model::Open, Engine::Create, Evaluate and Generate.
StatusOr<BenchMeasurement> MeasureBench(const BenchFlags& flags);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BENCH_MEASUREMENT_H_
