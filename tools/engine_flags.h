// StreamFlags as the engine's options.
#ifndef COLDSTREAM_TOOLS_ENGINE_FLAGS_H_
#define COLDSTREAM_TOOLS_ENGINE_FLAGS_H_

#include "runtime/engine.h"
#include "runtime/model.h"
#include "tools/stream_flags.h"

namespace coldstream {

ModelOptions ModelOptionsFrom(const StreamFlags& flags);

// `positions`: what the command will use, taken as the context where -c was not
// given, so that no memory is kept for tokens that cannot come. 0: unknown.
EngineOptions EngineOptionsFrom(const StreamFlags& flags, int64_t positions);

// Every warning of the engine, once, on stderr.
void PrintEngineWarnings(const Engine& engine);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_ENGINE_FLAGS_H_
