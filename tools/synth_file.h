// Writes a synthetic model as a GGUF file, at the speed of the disk.
#ifndef COLDSTREAM_TOOLS_SYNTH_FILE_H_
#define COLDSTREAM_TOOLS_SYNTH_FILE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "tools/synth_model.h"

namespace coldstream {

struct SynthFileOptions {
  std::string path;
  uint64_t seed = 0;
  int threads = 1;  // the bytes written do not depend on it
  // Ends the work with Cancelled when true; nullptr for none.
  const std::atomic<bool>* interrupted = nullptr;
};

// Size the file will have.
StatusOr<uint64_t> SynthFileBytes(const SynthModel& model);

// The file without its tensors' data.
struct SynthHeader {
  std::string bytes;
  uint64_t file_bytes = 0;
};
StatusOr<SynthHeader> MakeSynthHeader(const SynthModel& model);

// Writes the file under a temporary name beside `path` and renames it when it
// is whole: a file of that name is a complete one, and one that was there stays
// until then. Returns its size. Errors, after which nothing is left behind:
// ResourceExhausted (too little space, with both numbers, before anything is
// written), InvalidArgument (`path` is something other than a regular file),
// NotFound (its folder), PermissionDenied, Unavailable (a write failed),
// Cancelled.
StatusOr<uint64_t> WriteSynthFile(const SynthModel& model,
                                  const SynthFileOptions& options);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_SYNTH_FILE_H_
