// StreamFlags as the engine's options.
#ifndef COLDSTREAM_TOOLS_ENGINE_FLAGS_H_
#define COLDSTREAM_TOOLS_ENGINE_FLAGS_H_

#include <memory>

#include "base/status.h"
#include "runtime/automatic_settings.h"
#include "runtime/chrome_trace.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "tools/stream_flags.h"

namespace coldstream {

ModelOptions ModelOptionsFrom(const StreamFlags& flags);

// `positions`: what the command will use, taken as the context where -c was not
// given, so that no memory is kept for tokens that cannot come. 0: unknown.
// No device is opened.
EngineOptions EngineOptionsFrom(const StreamFlags& flags, int64_t positions);

// Opens the device that --device asks for. Where auto comes down to the CPU in
// a build that could use a GPU, one line on stderr says why; it is an error
// where a flag was given that is for a device. Errors: the device's.
Status OpenDevice(const StreamFlags& flags, EngineOptions* options);

// The engine for `options`, with what the flags leave open taken from the
// profile (runtime/automatic_settings.h); *source says where from. Its warnings
// are printed. Errors: as Engine::Create.
StatusOr<std::unique_ptr<Engine>> CreateEngine(
    const StreamFlags& flags, std::shared_ptr<const Model> model,
    const EngineOptions& options, SettingsSource* source);

// The trace that --trace asks for, or nullptr. Must outlive the engine.
StatusOr<std::unique_ptr<ChromeTrace>> OpenTrace(const StreamFlags& flags);

// The outcome of a run with its trace finished: the run's error, else the
// trace's. A run that was interrupted has a trace too.
Status FinishTrace(ChromeTrace* trace, const Status& run);

// Every warning of the engine, once, on stderr.
void PrintEngineWarnings(const Engine& engine);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_ENGINE_FLAGS_H_
