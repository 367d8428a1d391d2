// What `coldstream bench` measures: a model's prompt and generation, run after
// run on one engine, each with the engine's, the kernel's and the devices'
// counts of what it took.
//
// A run: a fresh session, the prompt in passes of up to -b tokens, then
// generated tokens one a pass, greedy, past any end of generation. Prompt and
// generation are two calls, so that their counts are apart; nothing is read
// ahead from the one into the other. The first pass of all loads the resident
// weights: it belongs to the warm-up.
// Ceilings are measured before the engine is made and after it is gone, in the
// memory that it is to take or has given back: --ram holds throughout.
#ifndef COLDSTREAM_TOOLS_BENCH_MEASUREMENT_H_
#define COLDSTREAM_TOOLS_BENCH_MEASUREMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "scheduler/memory_plan.h"
#include "tools/disk_ceiling.h"
#include "tools/phase_sample.h"
#include "tools/stream_flags.h"

namespace coldstream {

enum class CacheState {
  kAsFound,
  kCold,  // the model's files are dropped from the page cache before each run
  kWarm,  // they are read into it before the first
};
const char* CacheStateName(CacheState state);  // "as found", "cold", "warm"

struct BenchFlags {
  StreamFlags stream;
  int64_t prompt_tokens = 128;    // -p; 0: no prompt is measured
  int64_t generated_tokens = 32;  // -n; 0: no generation is measured
  int runs = 5;                   // -r
  int warmup = 1;                 // --warmup, at least 1
  CacheState cache = CacheState::kAsFound;
  double probe_seconds = 1.5;  // --probe-seconds, 0: no ceilings
};

struct BenchMeasurement {
  // The setting.
  std::string model;
  std::string architecture;
  uint64_t weight_bytes = 0;  // touched by a pass
  MemoryPlan plan;
  std::string disk;        // for people; of the largest file
  bool in_memory = false;  // a file of the model lies on tmpfs or the like
  std::string io_backend;
  bool direct = false;  // every file, after the last run
  int io_depth = 0;
  uint64_t io_chunk = 0;
  int prefetch_depth = 0;
  int64_t batch_tokens = 0;
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
  std::optional<double> memory_ceiling;  // bytes per second
  uint64_t peak_rss = 0;
};

// Errors: those of Model::Open, Engine::Create, Evaluate and Generate.
StatusOr<BenchMeasurement> MeasureBench(const BenchFlags& flags);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BENCH_MEASUREMENT_H_
