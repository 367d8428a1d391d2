// A model one does not have, opened as if one did: the header that `synth`
// would write, with nothing behind it. For planning; its weights are zeros.
#ifndef COLDSTREAM_TOOLS_PRESET_MODEL_H_
#define COLDSTREAM_TOOLS_PRESET_MODEL_H_

#include <memory>

#include "base/status.h"
#include "runtime/model.h"
#include "tools/synth_model.h"

namespace coldstream {

// Takes memory for the header only. Errors: Unavailable (no memory file can be
// made); those of Model::Open.
StatusOr<std::shared_ptr<const Model>> OpenPresetModel(const SynthModel& model);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_PRESET_MODEL_H_
