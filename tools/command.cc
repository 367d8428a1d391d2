#include "tools/command.h"

#include <cstdio>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

void PrintLine(const char* kind, std::string_view message) {
  absl::FPrintF(stderr, "coldstream: %s: %s\n", kind, std::string(message));
}

}  // namespace

ExitCode ExitCodeOf(const Status& status) {
  if (status.ok()) return ExitCode::kOk;
  if (absl::IsCancelled(status)) return ExitCode::kInterrupted;
  PrintLine("error", MessageOf(status));
  return ExitCode::kFailed;
}

ExitCode ReportUsageError(std::string_view message) {
  PrintLine("error", message);
  std::fputs("Run with --help for the options.\n", stderr);
  return ExitCode::kUsage;
}

void PrintWarning(std::string_view message) { PrintLine("warning", message); }

}  // namespace coldstream
