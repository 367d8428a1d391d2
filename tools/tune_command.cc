// coldstream tune: finds the stream settings for a model and a budget, and
// remembers them for later runs.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "runtime/engine_plan.h"
#include "runtime/profile.h"
#include "runtime/split_settings.h"
#include "tools/command.h"
#include "tools/engine_flags.h"
#include "tools/option_checks.h"
#include "tools/status_line.h"
#include "tools/tune_measurement.h"
#include "tools/tune_report.h"

namespace coldstream {
namespace {

constexpr int64_t kMaxPasses = 1000;
constexpr double kMaxSeconds = 86400;
constexpr double kMaxProbeSeconds = 60;

struct CommandFlags {
  TuneFlags tune;
  bool dry_run = false;
};

void AddTuneFlags(CLI::App& app, CommandFlags* flags) {
  app.add_flag("--dry-run", flags->dry_run,
               "Write nothing to the profile that later runs use");
  app.add_option("--passes", flags->tune.passes,
                 "Decode passes of one visit to a setting, at least")
      ->transform(IntegerIn(1, kMaxPasses))
      ->capture_default_str();
  app.add_option("--seconds", flags->tune.seconds,
                 "End the search after about so many")
      ->transform(NumberIn(1, kMaxSeconds))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--probe-seconds", flags->tune.probe_seconds,
                 "For the disk alone; 0: not measured")
      ->transform(NumberIn(0, kMaxProbeSeconds))
      ->type_name("N")
      ->capture_default_str();
}

// What is being measured, on a line that is written over; where a status line
// would not be seen, nothing.
class PointLine {
 public:
  PointLine() : shown_(CanShowStatus(STDERR_FILENO)) {}
  ~PointLine() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  PointLine(const PointLine&) = delete;
  PointLine& operator=(const PointLine&) = delete;

  void Show(const std::string& line) const {
    if (shown_) std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  }

 private:
  const bool shown_;
};

// The rates by which later runs will choose what the CPU computes: every
// setting is measured with the split that it would have then.
StatusOr<SplitRates> RatesOfRuns(const CommandFlags& flags,
                                 const EngineOptions& options) {
  ASSIGN_OR_RETURN(const auto model,
                   Model::Open(ModelOptionsFrom(flags.tune.stream)));
  ASSIGN_OR_RETURN(const EnginePlan plan, PlanEngine(*model, options));
  Profile profile = Profile::Load(ProfilePlace::FromEnvironment());
  ASSIGN_OR_RETURN(const SplitRates rates,
                   FindSplitRates(*model, options, plan, &profile));
  if (!flags.dry_run) profile.Save();
  return rates;
}

StatusOr<TuneMeasurement> Measure(const CommandFlags& flags) {
  EngineOptions options = EngineOptionsFrom(flags.tune.stream, 0);
  RETURN_IF_ERROR(OpenDevice(flags.tune.stream, &options));
  if (options.gpu != nullptr) {
    ASSIGN_OR_RETURN(options.split_rates, RatesOfRuns(flags, options));
  }
  const PointLine line;
  return MeasureTune(flags.tune, options,
                     [&line](const std::string& text) { line.Show(text); });
}

TuneSaved Save(const TuneMeasurement& tune, bool dry_run) {
  TuneSaved saved{.dry_run = dry_run, .written = false, .path = ""};
  if (dry_run || !tune.streams()) return saved;
  Profile profile = Profile::Load(ProfilePlace::FromEnvironment());
  if (!profile.warning().empty()) PrintWarning(profile.warning());
  profile.PutTuned(tune.key, tune.Chosen());
  const ProfileSave result = profile.Save();
  if (!result.note.empty()) PrintWarning(result.note);
  saved.written = result.written;
  saved.path = profile.path();
  return saved;
}

Status RunTune(const CommandFlags& flags) {
  ASSIGN_OR_RETURN(const TuneMeasurement tune, Measure(flags));
  for (const std::string& line : tune.warnings) PrintWarning(line);
  const TuneSaved saved = Save(tune, flags.dry_run);
  const std::string text = flags.tune.stream.json
                               ? TuneJson(tune, saved).dump(2) + "\n"
                               : TuneText(tune, saved);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddTuneCommand(CLI::App& app, CommandBody* chosen) {
  auto flags = std::make_shared<CommandFlags>();
  CLI::App* command = app.add_subcommand(
      "tune", "Finds the stream settings for a model and a budget");
  AddStreamFlags(*command, &flags->tune.stream, StreamFlagSet::kTune);
  AddTuneFlags(*command, flags.get());
  command->final_callback([flags, chosen] {
    *chosen = [flags] {
      const Status usage = CheckStreamFlags(flags->tune.stream);
      if (!usage.ok()) return ReportUsageError(MessageOf(usage));
      return ExitCodeOf(RunTune(*flags));
    };
  });
}

}  // namespace coldstream
