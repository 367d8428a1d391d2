// How much slower this machine computes while its disk reads, and reads while
// it computes.
//
// A read costs more than the time it takes: its bytes go through the memory
// that products are bound by, and a virtual machine's disk may be served by the
// very cores that compute. Predictions that leave this out are too good.
#ifndef COLDSTREAM_RUNTIME_DISK_CONTENTION_H_
#define COLDSTREAM_RUNTIME_DISK_CONTENTION_H_

#include "base/status.h"
#include "io/reader.h"
#include "runtime/model.h"
#include "scheduler/cost_model.h"

namespace coldstream {

// One-token products and reads, alone in turn and then both. Reads the model's
// first file for about two seconds, and takes about 150 MiB meanwhile. Errors:
// the reader's, ResourceExhausted.
StatusOr<Contention> MeasureDiskContention(const Model& model, int threads,
                                           const ReaderOptions& reader);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_DISK_CONTENTION_H_
