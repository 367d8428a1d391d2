// coldstream bench: how fast a model runs, and what limits it.
#include <cstdio>
#include <memory>
#include <string>

#include "tools/bench_measurement.h"
#include "tools/bench_report.h"
#include "tools/command.h"
#include "tools/option_checks.h"

namespace coldstream {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 24;
constexpr int64_t kMaxRuns = 1000;
constexpr double kMaxProbeSeconds = 60;

enum class Format { kTable, kJson, kCsv };

struct CommandFlags {
  BenchFlags bench;
  bool cold = false;
  bool warm = false;
  bool csv = false;
  Format format = Format::kTable;
};

// Names as llama-bench has them.
void AddBenchFlags(CLI::App& app, CommandFlags* flags) {
  BenchFlags& bench = flags->bench;
  app.add_option("-p,--n-prompt", bench.prompt_tokens,
                 "Prompt tokens, random but the same every time; 0: none")
      ->transform(IntegerIn(0, kMaxTokens))
      ->capture_default_str();
  app.add_option("-n,--n-gen", bench.generated_tokens,
                 "Tokens to generate after it; 0: none")
      ->transform(IntegerIn(0, kMaxTokens))
      ->capture_default_str();
  app.add_option("-r,--repetitions", bench.runs, "Measured runs")
      ->transform(IntegerIn(1, kMaxRuns))
      ->capture_default_str();
  app.add_option("--warmup", bench.warmup,
                 "Runs before them; the first loads the resident weights")
      ->transform(IntegerIn(1, kMaxRuns))
      ->capture_default_str();
  app.add_flag("--cold", flags->cold,
               "Drop the model's files from the page cache before each run");
  app.add_flag("--warm", flags->warm, "Read them into it before the first")
      ->excludes("--cold");
  app.add_option("--probe-seconds", bench.probe_seconds,
                 "For each probe of the disk's ceiling; 0: no ceilings")
      ->transform(NumberIn(0, kMaxProbeSeconds))
      ->type_name("N")
      ->capture_default_str();
}

void AddFormatFlags(CLI::App& app, CommandFlags* flags) {
  app.add_flag("--csv", flags->csv, "Print one row per run, with a header row")
      ->excludes("--json");
  app.add_option("-o,--output", flags->format, "The same by name")
      ->transform(OneOf<Format>({{"table", Format::kTable},
                                 {"json", Format::kJson},
                                 {"csv", Format::kCsv}}))
      ->excludes("--json")
      ->excludes("--csv")
      ->type_name("WORD");
}

Status Bench(const CommandFlags& flags) {
  ASSIGN_OR_RETURN(const BenchMeasurement measurement,
                   MeasureBench(flags.bench));
  std::string text;
  switch (flags.format) {
    case Format::kTable:
      text = BenchText(measurement);
      break;
    case Format::kJson:
      text = BenchJson(measurement).dump(2) + "\n";
      break;
    case Format::kCsv:
      text = BenchCsv(measurement);
      break;
  }
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddBenchCommand(CLI::App& app, CommandBody* chosen) {
  auto flags = std::make_shared<CommandFlags>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measures a model's speed and what limits it");
  AddStreamFlags(*command, &flags->bench.stream);
  AddBenchFlags(*command, flags.get());
  AddFormatFlags(*command, flags.get());
  command->final_callback([flags, chosen] {
    *chosen = [flags] {
      BenchFlags& bench = flags->bench;
      if (bench.prompt_tokens == 0 && bench.generated_tokens == 0)
        return ReportUsageError("-p 0 -n 0: there is nothing to measure");
      if (flags->cold) bench.cache = CacheState::kCold;
      if (flags->warm) bench.cache = CacheState::kWarm;
      if (bench.stream.json) flags->format = Format::kJson;
      if (flags->csv) flags->format = Format::kCsv;
      return ExitCodeOf(Bench(*flags));
    };
  });
}

}  // namespace coldstream
