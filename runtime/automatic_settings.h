// How a model is best streamed here: what the user did not fix is taken from
// the profile, and the disk is measured once where nothing is known of it. So
// are, where much is uploaded to a device in every pass, the rates by which an
// engine chooses what the CPU computes beside it.
//
//   Profile profile = Profile::Load(ProfilePlace::FromEnvironment());
//   ASSIGN_OR_RETURN(auto chosen, ChooseSettings(*model, options, {},
//   &profile)); Engine::Create(model, chosen.options);
//
// Nothing is looked up or measured where it could not matter: everything is
// resident, the files are in memory, or a pass reads little.
#ifndef COLDSTREAM_RUNTIME_AUTOMATIC_SETTINGS_H_
#define COLDSTREAM_RUNTIME_AUTOMATIC_SETTINGS_H_

#include <cstdint>
#include <string>

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "runtime/profile.h"

namespace coldstream {

// Settings that are the user's and stay as the options have them.
struct FixedSettings {
  bool prefetch_depth = false;
  bool io_depth = false;
  bool io_chunk = false;
  bool io_backend = false;
};

enum class SettingsSource {
  kDefault,   // nothing known, nothing measured
  kTuned,     // `coldstream tune` on this model and budget
  kProbe,     // the disk, measured earlier
  kProbeNow,  // the disk, measured by this call (1.5 seconds)
};
const char* SettingsSourceName(SettingsSource source);

struct AutomaticSettings {
  EngineOptions options;
  SettingsSource source = SettingsSource::kDefault;
  std::string note;  // a line worth showing; empty if there is none
};

// `profile`: what is measured is put and saved there. The measurement stays
// within options.ram_bytes. Errors: Cancelled; what PlanEngine finds wrong with
// the options. A disk that cannot be measured is no error.
StatusOr<AutomaticSettings> ChooseSettings(const Model& model,
                                           const EngineOptions& options,
                                           const FixedSettings& fixed,
                                           Profile* profile);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_AUTOMATIC_SETTINGS_H_
