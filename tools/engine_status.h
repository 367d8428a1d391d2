// The status line of a command that runs an engine: on stderr, against the
// disk's ceiling where one is known.
//
//   StatusLine status(EngineStatus(*engine, RememberedDiskRate(*model)));
#ifndef COLDSTREAM_TOOLS_ENGINE_STATUS_H_
#define COLDSTREAM_TOOLS_ENGINE_STATUS_H_

#include <optional>

#include "runtime/engine.h"
#include "runtime/model.h"
#include "tools/status_line.h"

namespace coldstream {

// The engine must outlive the line.
StatusLine::Options EngineStatus(const Engine& engine,
                                 std::optional<double> disk_ceiling);

// What the profile knows of the model's disk, in bytes per second; nullopt also
// where no status line would be seen.
std::optional<double> RememberedDiskRate(const Model& model);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_ENGINE_STATUS_H_
