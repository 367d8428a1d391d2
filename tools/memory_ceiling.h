// How fast this machine's threads read memory: the ceiling for weights that are
// computed from RAM.
//
// All threads sum a buffer several times larger than the last-level caches, so
// that every byte comes from memory; the best of a few passes counts.
// Units: bytes per second.
// Errors: ResourceExhausted where the buffer may not be large enough, saying
// what it would take.
// Source: Linux Documentation/ABI/testing/sysfs-devices-system-cpu (cache/).
#ifndef COLDSTREAM_TOOLS_MEMORY_CEILING_H_
#define COLDSTREAM_TOOLS_MEMORY_CEILING_H_

#include <cstdint>
#include <string>

#include "base/status.h"

namespace coldstream {

// All last-level caches together; 0 where the system does not tell. `sys`: the
// root of sysfs, for tests.
uint64_t LastLevelCacheBytes(const std::string& sys = "/sys");

// `most_bytes`: of the buffer. Takes about a quarter of a second.
StatusOr<double> MeasureMemoryCeiling(int threads, uint64_t most_bytes);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_MEMORY_CEILING_H_
