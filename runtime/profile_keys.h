// The names under which a profile remembers what belongs to a model or a CPU.
// (Disks name themselves: DiskIdentity::Key.)
#ifndef COLDSTREAM_RUNTIME_PROFILE_KEYS_H_
#define COLDSTREAM_RUNTIME_PROFILE_KEYS_H_

#include <string>

#include "base/system_limits.h"
#include "io/checkpoint.h"
#include "runtime/engine.h"
#include "runtime/profile_data.h"

namespace coldstream {

// The same for the same tensors (names, types, shapes) wherever the file lies
// and however it is split: "201 tensors, 668241696 bytes, 1f3a...". No weights
// are read, so models that differ in values alone share a key, as they should.
std::string ModelKey(const Checkpoint& checkpoint);

// The CPU's name, the ops row and the threads: "AMD EPYC 9R14, avx512,
// 2 threads".
std::string ComputeKey(const std::string& isa_name, int threads,
                       const SystemPaths& paths = {});

// What was tuned for these options, every default filled in, on the disk of
// that key.
TunedKey TunedKeyOf(const std::string& disk, const Checkpoint& checkpoint,
                    const EngineOptions& options);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_PROFILE_KEYS_H_
