#include "tools/engine_flags.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "tools/command.h"
#include "tools/interrupt.h"

namespace coldstream {

ModelOptions ModelOptionsFrom(const StreamFlags& flags) {
  ModelOptions options;
  options.path = flags.model;
  options.direct = flags.direct;
  options.tokenizer.pre = flags.pre;
  return options;
}

EngineOptions EngineOptionsFrom(const StreamFlags& flags, int64_t positions) {
  EngineOptions options;
  options.ram_bytes = flags.ram.value_or(0);
  options.vram_bytes = flags.vram.value_or(0);
  options.staging_bytes = flags.staging.value_or(options.staging_bytes);
  options.gpu_layers = flags.gpu_layers;
  options.cpu_layers = flags.cpu_layers;
  options.cpu_ffn = flags.cpu_ffn;
  options.kv_type = flags.kv_type();
  options.prefetch_depth =
      flags.prefetch_depth.value_or(options.prefetch_depth);
  options.reader = flags.reader_options();
  options.threads = flags.threads.value_or(0);
  options.context = flags.context.value_or(positions);
  options.batch_tokens = flags.batch.value_or(options.batch_tokens);
  options.cancel = &CatchInterrupts();
  return options;
}

Status OpenDevice(const StreamFlags& flags, EngineOptions* options) {
  ASSIGN_OR_RETURN(OpenedDevice opened, OpenComputeDevice(flags.device));
  options->gpu = std::move(opened.gpu);
  if (opened.fallback.empty()) return absl::OkStatus();
  if (const char* const given = FirstDeviceFlag(flags)) {
    return absl::UnavailableError(
        absl::StrFormat("%s was given but there is no device to run on (%s); "
                        "leave it out to run on the CPU",
                        given, opened.fallback));
  }
  options->device_fallback = opened.fallback;
  if (opened.unexpected) PrintWarning(opened.fallback);
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<Engine>> CreateEngine(
    const StreamFlags& flags, std::shared_ptr<const Model> model,
    const EngineOptions& options, SettingsSource* source) {
  Profile profile = Profile::Load(ProfilePlace::FromEnvironment());
  if (!profile.warning().empty()) PrintWarning(profile.warning());
  const FixedSettings fixed = {
      .prefetch_depth = flags.prefetch_depth.has_value(),
      .io_depth = flags.io_depth.has_value(),
      .io_chunk = flags.io_chunk.has_value(),
      .io_backend = flags.io != IoBackendKind::kAuto};
  ASSIGN_OR_RETURN(const AutomaticSettings chosen,
                   ChooseSettings(*model, options, fixed, &profile));
  if (!chosen.note.empty()) PrintWarning(chosen.note);
  *source = chosen.source;
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                   Engine::Create(std::move(model), chosen.options));
  PrintEngineWarnings(*engine);
  return engine;
}

StatusOr<std::unique_ptr<ChromeTrace>> OpenTrace(const StreamFlags& flags) {
  if (flags.trace.empty()) return std::unique_ptr<ChromeTrace>();
  return ChromeTrace::Create(flags.trace);
}

Status FinishTrace(ChromeTrace* trace, const Status& run) {
  if (trace == nullptr) return run;
  const Status finished = trace->Finish();
  return run.ok() ? finished : run;
}

void PrintEngineWarnings(const Engine& engine) {
  for (const std::string& line : engine.warnings()) PrintWarning(line);
}

}  // namespace coldstream
