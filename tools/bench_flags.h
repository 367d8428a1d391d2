// The options of `coldstream bench`, with their ranges and defaults. Where
// llama-bench has the option it has the same name here.
#ifndef COLDSTREAM_TOOLS_BENCH_FLAGS_H_
#define COLDSTREAM_TOOLS_BENCH_FLAGS_H_

#include <cstdint>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "tools/stream_flags.h"

namespace coldstream {

enum class CacheState {
  kAsFound,
  kCold,  // the model's files are dropped from the page cache before each run
  kWarm,  // they are read into it before the first
};
const char* CacheStateName(CacheState state);  // "as found", "cold", "warm"

enum class BenchFormat { kTable, kJson, kCsv };

struct BenchFlags {
  StreamFlags stream;
  int64_t prompt_tokens = 128;               // -p; 0: no prompt is measured
  int64_t generated_tokens = 32;             // -n; 0: no generation is measured
  int64_t sequences = 1;                     // -np
  int runs = 5;                              // -r
  int warmup = 1;                            // --warmup, at least 1
  CacheState cache = CacheState::kAsFound;   // --cold, --warm
  double probe_seconds = 1.5;                // --probe-seconds, 0: no ceilings
  BenchFormat format = BenchFormat::kTable;  // -o, --json, --csv
};

// Adds the options to `app`; *flags is filled when app parses. Lifetime: *flags
// must outlive app.
void AddBenchFlags(CLI::App& app, BenchFlags* flags);

// For what is wrong with the flags together: InvalidArgument.
Status CheckBenchFlags(const BenchFlags& flags);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BENCH_FLAGS_H_
