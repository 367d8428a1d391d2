// coldstream trace: a page that shows what a run recorded with --trace.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "absl/strings/str_format.h"
#include "io/atomic_file.h"
#include "tools/command.h"
#include "tools/timeline_page.h"
#include "tools/timeline_reader.h"
#include "tools/timeline_summary.h"

namespace coldstream {
namespace {

struct TraceFlags {
  std::string path;
  std::string output;
};

// FILE with .html in place of .json, or after any other name.
std::string DefaultOutput(const std::string& path) {
  std::filesystem::path name = path;
  if (name.extension() == ".json") return name.replace_extension("html");
  return path + ".html";
}

Status WritePage(const std::string& page, const std::string& output) {
  ASSIGN_OR_RETURN(auto file, AtomicFile::Create(output, page.size()));
  RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(page))));
  return file->Commit();
}

Status DrawTrace(const std::string& path, const std::string& output) {
  ASSIGN_OR_RETURN(const Timeline timeline, ReadTimeline(path));
  if (timeline.ignored > 0) {
    PrintWarning(absl::StrFormat(
        "%s: %d events are neither spans (X) nor counters (C): not drawn", path,
        timeline.ignored));
  }
  const TimelineSummary summary = Summarize(timeline);
  const std::string page = TimelinePage(
      timeline, summary, std::filesystem::path(path).filename().string());
  if (output == "-") {
    std::fwrite(page.data(), 1, page.size(), stdout);  // main checks stdout
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(WritePage(page, output));
  absl::FPrintF(stderr, "wrote %s: %d passes, %.2f s, stalled %.2f s\n", output,
                summary.passes.size(),
                static_cast<double>(summary.wall_ns) / 1e9,
                static_cast<double>(summary.stall_ns) / 1e9);
  return absl::OkStatus();
}

ExitCode RunTrace(const TraceFlags& flags) {
  const std::string output =
      flags.output.empty() ? DefaultOutput(flags.path) : flags.output;
  std::error_code ignored;
  if (std::filesystem::equivalent(flags.path, output, ignored))
    return ReportUsageError("-o: would replace the trace it is made from");
  return ExitCodeOf(DrawTrace(flags.path, output));
}

}  // namespace

void AddTraceCommand(CLI::App& app, CommandBody* chosen) {
  auto flags = std::make_shared<TraceFlags>();
  CLI::App* command = app.add_subcommand(
      "trace", "Draws what a run recorded with --trace, as one HTML page");
  command->add_option("FILE", flags->path, "The trace: Chrome trace JSON")
      ->required()
      ->type_name("");
  command
      ->add_option("-o,--output", flags->output,
                   "Page to write, - for stdout (default: FILE's name with "
                   ".html)")
      ->type_name("FILE");
  command->final_callback(
      [flags, chosen] { *chosen = [flags] { return RunTrace(*flags); }; });
}

}  // namespace coldstream
