#include "tools/bench_flags.h"

#include "tools/option_checks.h"

namespace coldstream {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 24;
constexpr int64_t kMaxRuns = 1000;
constexpr int64_t kMaxSequences = 4096;
constexpr double kMaxProbeSeconds = 60;

void AddRunFlags(CLI::App& app, BenchFlags* flags) {
  app.add_option("-p,--n-prompt", flags->prompt_tokens,
                 "Prompt tokens, random but the same every time; 0: none")
      ->transform(IntegerIn(0, kMaxTokens))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-n,--n-gen", flags->generated_tokens,
                 "Tokens to generate after it; 0: none")
      ->transform(IntegerIn(0, kMaxTokens))
      ->type_name("N")
      ->capture_default_str();
  app.add_option(
         "--parallel", flags->sequences,
         "-np N: sequences at once, each with -p and -n tokens, in one sweep "
         "of the weights")
      ->transform(IntegerIn(1, kMaxSequences))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-r,--repetitions", flags->runs, "Measured runs")
      ->transform(IntegerIn(1, kMaxRuns))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--warmup", flags->warmup,
                 "Runs before them; the first loads the resident weights")
      ->transform(IntegerIn(1, kMaxRuns))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--probe-seconds", flags->probe_seconds,
                 "For each probe of the disk's ceiling; 0: no ceilings")
      ->transform(NumberIn(0, kMaxProbeSeconds))
      ->type_name("N")
      ->capture_default_str();
}

void AddCacheFlags(CLI::App& app, BenchFlags* flags) {
  app.add_flag_callback(
      "--cold", [flags] { flags->cache = CacheState::kCold; },
      "Drop the model's files from the page cache before each run");
  app.add_flag_callback(
         "--warm", [flags] { flags->cache = CacheState::kWarm; },
         "Read them into it before the first")
      ->excludes("--cold");
}

// --json is one of the stream flags.
void AddFormatFlags(CLI::App& app, BenchFlags* flags) {
  app.add_flag_callback(
         "--csv", [flags] { flags->format = BenchFormat::kCsv; },
         "Print one row per run, with a header row")
      ->excludes("--json");
  app.add_option("-o,--output", flags->format, "The same by name")
      ->transform(OneOf<BenchFormat>({{"table", BenchFormat::kTable},
                                      {"json", BenchFormat::kJson},
                                      {"csv", BenchFormat::kCsv}}))
      ->excludes("--json")
      ->excludes("--csv")
      ->type_name("WORD");
}

}  // namespace

const char* CacheStateName(CacheState state) {
  switch (state) {
    case CacheState::kAsFound:
      return "as found";
    case CacheState::kCold:
      return "cold";
    case CacheState::kWarm:
      return "warm";
  }
  return "?";
}

void AddBenchFlags(CLI::App& app, BenchFlags* flags) {
  AddStreamFlags(app, &flags->stream);
  AddRunFlags(app, flags);
  AddCacheFlags(app, flags);
  AddFormatFlags(app, flags);
}

Status CheckBenchFlags(const BenchFlags& flags) {
  RETURN_IF_ERROR(CheckStreamFlags(flags.stream));
  if (flags.prompt_tokens > 0 || flags.generated_tokens > 0)
    return absl::OkStatus();
  return absl::InvalidArgumentError("-p 0 -n 0: there is nothing to measure");
}

}  // namespace coldstream
