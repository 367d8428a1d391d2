#include "tools/phase_sample.h"

namespace coldstream {

EngineStats operator+(const EngineStats& a, const EngineStats& b) {
  EngineStats sum;
  sum.passes = a.passes + b.passes;
  sum.units = a.units + b.units;
  sum.bytes_from_disk = a.bytes_from_disk + b.bytes_from_disk;
  sum.disk_busy_seconds = a.disk_busy_seconds + b.disk_busy_seconds;
  sum.run_seconds = a.run_seconds + b.run_seconds;
  sum.compute_seconds = a.compute_seconds + b.compute_seconds;
  sum.stall_seconds = a.stall_seconds + b.stall_seconds;
  sum.bytes_uploaded = a.bytes_uploaded + b.bytes_uploaded;
  sum.upload_busy_seconds = a.upload_busy_seconds + b.upload_busy_seconds;
  sum.cpu_units = a.cpu_units + b.cpu_units;
  sum.cpu_seconds = a.cpu_seconds + b.cpu_seconds;
  return sum;
}

double PhaseSample::tokens_per_second() const {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

PhaseSample operator+(const PhaseSample& a, const PhaseSample& b) {
  return {a.tokens + b.tokens, a.seconds + b.seconds, a.used + b.used,
          a.read + b.read};
}

}  // namespace coldstream
