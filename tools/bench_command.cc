// coldstream bench: how fast a model runs, and what limits it.
#include <cstdio>
#include <memory>
#include <string>

#include "tools/bench_flags.h"
#include "tools/bench_measurement.h"
#include "tools/bench_report.h"
#include "tools/command.h"

namespace coldstream {
namespace {

Status Bench(const BenchFlags& flags) {
  ASSIGN_OR_RETURN(const BenchMeasurement measurement, MeasureBench(flags));
  std::string text;
  switch (flags.stream.json ? BenchFormat::kJson : flags.format) {
    case BenchFormat::kTable:
      text = BenchText(measurement);
      break;
    case BenchFormat::kJson:
      text = BenchJson(measurement).dump(2) + "\n";
      break;
    case BenchFormat::kCsv:
      text = BenchCsv(measurement);
      break;
  }
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddBenchCommand(CLI::App& app, CommandBody* chosen) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measures a model's speed and what limits it");
  AddBenchFlags(*command, flags.get());
  command->final_callback([flags, chosen] {
    *chosen = [flags] {
      const Status usage = CheckBenchFlags(*flags);
      if (!usage.ok()) return ReportUsageError(MessageOf(usage));
      return ExitCodeOf(Bench(*flags));
    };
  });
}

}  // namespace coldstream
