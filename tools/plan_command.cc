// coldstream plan: what a model would do under a budget. Reads no weights.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/system_limits.h"
#include "tools/byte_size.h"
#include "tools/command.h"
#include "tools/engine_flags.h"
#include "tools/machine_rates.h"
#include "tools/model_shape.h"
#include "tools/option_checks.h"
#include "tools/plan_report.h"
#include "tools/preset_model.h"
#include "tools/quant_mix.h"
#include "tools/stream_flags.h"
#include "tools/synth_model.h"

namespace coldstream {
namespace {

// What --type stands for where it is not given: the usual ladder.
constexpr const char* kUsualTypes = "q2_k,q3_k_m,q4_k_m,q5_k_m,q6_k,q8_0,f16";

struct PlanFlags {
  StreamFlags stream;
  std::string preset;
  std::vector<std::string> types;
  std::vector<uint64_t> budgets;
  std::vector<uint64_t> vram_budgets;
  std::optional<double> disk_rate;  // GB/s, and so below
  std::optional<double> upload_rate;
  std::optional<double> vram_rate;
  bool probe = false;
  bool units = false;
};

struct NamedModel {
  std::shared_ptr<const Model> model;
  std::string type;  // of a preset
};

StatusOr<std::vector<NamedModel>> OpenModels(const PlanFlags& flags) {
  std::vector<NamedModel> models;
  if (flags.preset.empty()) {
    ASSIGN_OR_RETURN(auto model, Model::Open(ModelOptionsFrom(flags.stream)));
    models.push_back({std::move(model), ""});
    return models;
  }
  ShapeRequest request;
  request.preset = flags.preset;
  ASSIGN_OR_RETURN(const ModelShape shape, ResolveShape(request));
  std::vector<std::string> types = flags.types;
  if (types.empty()) types = absl::StrSplit(kUsualTypes, ',');
  for (const std::string& type : types) {
    ASSIGN_OR_RETURN(const QuantMix mix, QuantMix::FromName(type));
    ASSIGN_OR_RETURN(auto model,
                     OpenPresetModel(DescribeSynthModel(shape, mix)));
    models.push_back({std::move(model), absl::AsciiStrToLower(type)});
  }
  return models;
}

BudgetForecast ForecastBudget(const Model& model, const EngineOptions& options,
                              const MachineRates& rates) {
  BudgetForecast budget;
  budget.ram_bytes = options.ram_bytes;
  budget.vram_bytes = options.vram_bytes;
  StatusOr<Forecast> forecast = MakeForecast(model, options, rates);
  budget.status = forecast.status();
  if (!forecast.ok()) return budget;
  budget.forecast = *std::move(forecast);
  return budget;
}

// Every --ram with every --vram.
StatusOr<ModelForecast> ForecastModel(const PlanFlags& flags,
                                      const EngineOptions& base,
                                      const NamedModel& named,
                                      RateSource* source) {
  EngineOptions options = base;
  ASSIGN_OR_RETURN(const MachineRates rates, source->RatesFor(*named.model));
  ModelForecast plan;
  plan.model = named.model;
  plan.type = named.type;
  std::vector<uint64_t> budgets = flags.budgets;
  if (budgets.empty()) budgets.push_back(DefaultRamBudget().bytes);
  std::vector<uint64_t> vram_budgets = flags.vram_budgets;
  if (vram_budgets.empty()) vram_budgets.push_back(base.vram_bytes);
  for (const uint64_t vram : vram_budgets) {
    for (const uint64_t ram : budgets) {
      options.vram_bytes = vram;
      options.ram_bytes = ram;
      plan.budgets.push_back(ForecastBudget(*named.model, options, rates));
    }
  }
  return plan;
}

void Print(const PlanFlags& flags, const std::vector<ModelForecast>& plans,
           const std::string& rates_note) {
  if (flags.stream.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const ModelForecast& plan : plans) json.push_back(PlanJson(plan));
    if (plans.size() == 1) json = json[0];
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  std::string text = plans.size() == 1 ? PlanText(plans[0]) : TypesText(plans);
  if (flags.units)
    for (const ModelForecast& plan : plans) text += UnitsText(plan);
  std::printf("%s\n%s", text.c_str(), rates_note.c_str());
}

// Fails if no budget of any model works.
Status FirstErrorIfAllFail(const std::vector<ModelForecast>& plans) {
  const Status* first = nullptr;
  for (const ModelForecast& plan : plans) {
    for (const BudgetForecast& budget : plan.budgets) {
      if (budget.status.ok()) return absl::OkStatus();
      if (first == nullptr) first = &budget.status;
    }
  }
  return *first;
}

// A device that is here is planned for, unless --device or -ngl 0 say
// otherwise; one that is not, if its memory is given.
StatusOr<EngineOptions> OptionsFor(const PlanFlags& flags) {
  EngineOptions options = EngineOptionsFrom(flags.stream, /*positions=*/0);
  ASSIGN_OR_RETURN(OpenedDevice opened, OpenComputeDevice(flags.stream.device));
  if (!flags.vram_budgets.empty()) {
    options.gpu = std::move(opened.gpu);
    return options;
  }
  if (opened.gpu == nullptr) {
    const char* const given = FirstDeviceFlag(flags.stream);
    if (given == nullptr) return options;
    return absl::UnavailableError(absl::StrFormat(
        "%s was given but there is no device to plan for (%s); give its memory "
        "as --vram, and its rates as --h2d-rate and --vram-rate",
        given, opened.fallback));
  }
  if (flags.stream.gpu_layers == 0) return options;
  options.gpu = std::move(opened.gpu);
  // The same for all columns, whatever is free by then.
  ASSIGN_OR_RETURN(const DeviceMemoryInfo memory,
                   options.gpu->device->MemoryInfo());
  options.vram_bytes = DefaultVramBudget(memory);
  return options;
}

Status Plan(const PlanFlags& flags) {
  ASSIGN_OR_RETURN(const std::vector<NamedModel> models, OpenModels(flags));
  ASSIGN_OR_RETURN(const EngineOptions options, OptionsFor(flags));
  RateSource source(
      {.disk_rate = flags.disk_rate,
       .probe = flags.probe,
       .has_file = flags.preset.empty(),
       .threads = flags.stream.threads.value_or(DefaultThreads()),
       .reader = flags.stream.reader_options(),
       .gpu = options.gpu,
       .for_device = options.gpu != nullptr || !flags.vram_budgets.empty(),
       .upload_rate = flags.upload_rate,
       .vram_rate = flags.vram_rate});
  std::vector<ModelForecast> plans;
  for (const NamedModel& named : models) {
    ASSIGN_OR_RETURN(ModelForecast plan,
                     ForecastModel(flags, options, named, &source));
    plans.push_back(std::move(plan));
  }
  source.Remember();
  for (const std::string& warning : source.warnings()) PrintWarning(warning);
  RETURN_IF_ERROR(FirstErrorIfAllFail(plans));
  Print(flags, plans, source.Note());
  return absl::OkStatus();
}

Status CheckFlags(const PlanFlags& flags) {
  if (flags.stream.gpu_layers == 0 && !flags.vram_budgets.empty()) {
    return absl::InvalidArgumentError(
        "-ngl 0 leaves nothing to a device: leave it or --vram out");
  }
  if (flags.stream.device == DeviceChoice::kCpu &&
      (!flags.vram_budgets.empty() || flags.upload_rate || flags.vram_rate)) {
    return absl::InvalidArgumentError(
        "--vram, --h2d-rate and --vram-rate are for a device with memory of "
        "its own; --device cpu has none");
  }
  RETURN_IF_ERROR(CheckStreamFlags(flags.stream));
  if (flags.stream.model.empty() == flags.preset.empty())
    return absl::InvalidArgumentError("give either -m PATH or --preset NAME");
  if (!flags.types.empty() && flags.preset.empty()) {
    return absl::InvalidArgumentError(
        "--type goes with --preset; a file has its own types");
  }
  for (const std::string& type : flags.types)
    RETURN_IF_ERROR(QuantMix::FromName(type).status());
  return absl::OkStatus();
}

}  // namespace

void AddPlanCommand(CLI::App& app, CommandBody* chosen) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = app.add_subcommand(
      "plan", "Predicts memory, homes and speed under budgets; runs nothing");
  AddStreamFlags(*command, &flags->stream, StreamFlagSet::kPlan);
  command
      ->add_option("--preset", flags->preset,
                   "Plan for a known model one does not have")
      ->type_name(absl::StrJoin(PresetNames(), "|"));
  command
      ->add_option("--type", flags->types,
                   absl::StrFormat("Weight types of the preset, a row each "
                                   "(default %s)",
                                   kUsualTypes))
      ->delimiter(',')
      ->type_name("NAME,...");
  command
      ->add_option("--ram", flags->budgets,
                   "Memory caps to plan for, a column each, e.g. 4G,8G,16G "
                   "(default: what is free)")
      ->delimiter(',')
      ->transform(RamSize())
      ->type_name("SIZE,...");
  command
      ->add_option("--disk-rate", flags->disk_rate,
                   "GB/s of the disk, in place of a measured one")
      ->transform(PositiveNumber())
      ->type_name("X");
  command
      ->add_option("--vram", flags->vram_budgets,
                   "Device memory to plan for, a column each, with or without "
                   "a device here (default: what is free on the one here)")
      ->delimiter(',')
      ->transform(RamSize())
      ->type_name("SIZE,...");
  command
      ->add_option("--h2d-rate", flags->upload_rate,
                   "GB/s from host to device memory, in place of a measured "
                   "one")
      ->transform(PositiveNumber())
      ->type_name("X");
  command
      ->add_option("--vram-rate", flags->vram_rate,
                   "GB/s of the device's own memory, where there is no device "
                   "to measure")
      ->transform(PositiveNumber())
      ->type_name("X");
  command->add_flag("--probe", flags->probe,
                    "Measure disk and processor now, whatever is remembered");
  command->add_flag("--units", flags->units, "List every unit and its home");
  command->final_callback([flags, chosen] {
    *chosen = [flags] {
      const Status usage = CheckFlags(*flags);
      if (!usage.ok()) return ReportUsageError(MessageOf(usage));
      return ExitCodeOf(Plan(*flags));
    };
  });
}

}  // namespace coldstream
