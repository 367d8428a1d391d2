// How fast a device computes: the same figures as ComputeRates::Measure has of
// the CPU, with the device's own kernels on weights in its memory.
//
//   ASSIGN_OR_RETURN(auto rates, MeasureDeviceRates(*model, *gpu, known));
//   const auto costs = UnitCosts(*model, rates, {.tokens = 1});
//
// Products run over more memory than the device's caches hold, in pieces the
// size of a weight unit, queued without waiting, as a pass queues them.
#ifndef COLDSTREAM_RUNTIME_DEVICE_RATES_H_
#define COLDSTREAM_RUNTIME_DEVICE_RATES_H_

#include "base/status.h"
#include "runtime/compute_device.h"
#include "runtime/compute_rates.h"
#include "runtime/model.h"

namespace coldstream {

// Takes up to 256 MiB of device memory, a quarter of what is free at most.
// Errors: ResourceExhausted, the device's.
StatusOr<ComputeRates> MeasureDeviceRates(
    const Model& model, const ComputeDevice& gpu,
    const ComputeRates::Seconds& known = {});

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_DEVICE_RATES_H_
