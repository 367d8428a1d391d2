// A BenchMeasurement with round figures, for tests of what is made of it.
#ifndef COLDSTREAM_TESTS_TOOLS_BENCH_SAMPLES_H_
#define COLDSTREAM_TESTS_TOOLS_BENCH_SAMPLES_H_

#include <cstdint>

#include "tools/bench_measurement.h"

namespace coldstream {

// A phase that read a GB a pass, four fifths of its time, and computed two.
inline PhaseSample SamplePhase(int64_t tokens, int64_t passes, double seconds) {
  PhaseSample sample;
  sample.tokens = tokens;
  sample.seconds = seconds;
  sample.used.passes = passes;
  sample.used.bytes_from_disk = static_cast<uint64_t>(passes) * 1'000'000'000u;
  sample.used.run_seconds = seconds;
  sample.used.disk_busy_seconds = 0.8 * seconds;
  sample.used.compute_seconds = 0.4 * seconds;
  sample.used.stall_seconds = 0.6 * seconds;
  const uint64_t bytes = sample.used.bytes_from_disk;
  sample.read = {bytes, bytes, bytes};
  return sample;
}

// Three runs of 8 prompt tokens in one pass and 4 generated ones, at 1, 2 and
// 1 tokens a second: 12 GB in 8 s of reading.
inline BenchMeasurement SampleMeasurement() {
  BenchMeasurement measurement;
  measurement.model = "tiny";
  measurement.architecture = "llama";
  measurement.weight_bytes = 2'000'000'000;
  measurement.plan.pass_read_bytes = 1'000'000'000;
  measurement.disk = "ext4 on disk0";
  measurement.io_backend = "uring";
  measurement.direct = true;
  measurement.isa = "scalar";
  measurement.prompt_tokens = 8;
  measurement.generated_tokens = 4;
  measurement.warmup = 1;
  measurement.runs = {{SamplePhase(8, 1, 2), SamplePhase(4, 4, 4)},
                      {SamplePhase(8, 1, 2), SamplePhase(4, 4, 2)},
                      {SamplePhase(8, 1, 2), SamplePhase(4, 4, 4)}};
  DiskProbe probe;
  probe.bytes_per_second = 2e9;
  measurement.disk_ceiling.before = probe;
  measurement.memory_ceiling = 10e9;
  return measurement;
}

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_TOOLS_BENCH_SAMPLES_H_
