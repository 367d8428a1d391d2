// coldstream inspect: what is in a model file, from its headers alone.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint.h"
#include "nlohmann/json.hpp"
#include "tools/command.h"
#include "tools/inspect_report.h"
#include "tools/model_files.h"

namespace coldstream {
namespace {

using nlohmann::json;

struct InspectFlags {
  std::vector<std::string> paths;
  bool json = false;
  bool tensors = false;
  bool whole_arrays = false;
};

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// Looks at every model given, bad ones included.
class Inspection {
 public:
  explicit Inspection(const InspectFlags& flags) : flags_(flags) {}

  void Inspect(const std::string& path) {
    // Headers are read through the page cache in any case.
    const StatusOr<Checkpoint> checkpoint =
        Checkpoint::Open(path, {.direct = DirectMode::kOff});
    if (!checkpoint.ok()) return Fail(path, checkpoint.status());
    for (const std::string& warning : checkpoint->warnings())
      PrintWarning(warning);
    if (flags_.json) {
      models_.push_back(InspectJson(
          *checkpoint,
          flags_.whole_arrays ? ArrayLength::kWhole : ArrayLength::kShortened));
    } else {
      if (std::exchange(printed_, true)) Print("\n");
      Print(InspectText(*checkpoint, flags_.tensors ? TensorList::kShow
                                                    : TensorList::kLeaveOut));
    }
  }

  void Fail(const std::string& path, const Status& status) {
    code_ = ExitCodeOf(status);
    if (flags_.json)
      models_.push_back({{"path", path}, {"error", MessageOf(status)}});
  }

  // One model's object where one was asked for, else an array of them.
  ExitCode Finish(bool several) {
    if (flags_.json) {
      const json& result = several ? models_ : models_.at(0);
      // Names and strings of a file may be any bytes.
      Print(result.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
    }
    return code_;
  }

 private:
  const InspectFlags& flags_;
  json models_ = json::array();
  bool printed_ = false;
  ExitCode code_ = ExitCode::kOk;
};

ExitCode RunInspect(const InspectFlags& flags) {
  Inspection inspection(flags);
  size_t models = 0;
  for (const std::string& path : flags.paths) {
    const StatusOr<std::vector<std::string>> files = ModelFiles(path);
    if (!files.ok()) {
      inspection.Fail(path, files.status());
      ++models;
      continue;
    }
    for (const std::string& file : *files) inspection.Inspect(file);
    models += files->size();
  }
  return inspection.Finish(models != 1);
}

}  // namespace

void AddInspectCommand(CLI::App& app, CommandBody* chosen) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Shows what is in model files, reading only their headers");
  command
      ->add_option("-m,--model,PATH", flags->paths,
                   "GGUF files, or folders whose models are shown in turn")
      ->required()
      ->type_name("");
  command->add_flag("--tensors", flags->tensors,
                    "List every tensor: name, type, shape, bytes, offset");
  command->add_flag("--json", flags->json,
                    "Print everything, tensors too, as JSON: an object, or an "
                    "array of them where there are several models");
  command->add_flag("--arrays", flags->whole_arrays,
                    "With --json: metadata arrays (vocabularies) in full");
  command->final_callback(
      [flags, chosen] { *chosen = [flags] { return RunInspect(*flags); }; });
}

}  // namespace coldstream
