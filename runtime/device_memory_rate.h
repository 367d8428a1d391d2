// How fast a device reads its own memory: the ceiling of what is computed
// there.
//
// out += x over two vectors of 256 MiB (less where less is free), two
// reads and a write for each element, with the device's own kernel, as STREAM
// (McCalpin 1995) counts its "add"; the best of a few rounds. Units: bytes
// per second.
#ifndef COLDSTREAM_RUNTIME_DEVICE_MEMORY_RATE_H_
#define COLDSTREAM_RUNTIME_DEVICE_MEMORY_RATE_H_

#include "base/status.h"
#include "runtime/compute_device.h"

namespace coldstream {

// Errors: ResourceExhausted, the device's.
StatusOr<double> MeasureDeviceMemoryRate(const ComputeDevice& gpu);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_DEVICE_MEMORY_RATE_H_
