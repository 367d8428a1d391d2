// What a subcommand of `coldstream` provides: one function, in one file named
// after it, that adds its options to the program and says what to run.
//
//   void AddInspectCommand(CLI::App& app, CommandBody* chosen) {
//     auto flags = std::make_shared<InspectFlags>();
//     CLI::App* command = app.add_subcommand("inspect", "Shows a model file");
//     command->add_option(...);
//     command->final_callback([=] {
//       *chosen = [flags] { return RunInspect(*flags); };
//     });
//   }
//
// The body runs after parsing, outside CLI11. Data goes to stdout, everything
// else to stderr. A new command: declare it here, add it to the list in
// main.cc.
#ifndef COLDSTREAM_TOOLS_COMMAND_H_
#define COLDSTREAM_TOOLS_COMMAND_H_

#include <functional>
#include <string>
#include <string_view>

#include "CLI/CLI.hpp"
#include "base/status.h"

namespace coldstream {

enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kInterrupted = 130,
};

using CommandBody = std::function<ExitCode()>;

// kOk for an OK status. Otherwise prints "coldstream: error: ..." on stderr and
// returns kFailed, or kInterrupted without a message for Cancelled.
ExitCode ExitCodeOf(const Status& status);

// For what only the body can see to be wrong with the flags: prints the message
// and where help is, returns kUsage.
ExitCode ReportUsageError(std::string_view message);

// "coldstream: warning: ..." on stderr.
void PrintWarning(std::string_view message);

void AddBatchCommand(CLI::App& app, CommandBody* chosen);
void AddBenchCommand(CLI::App& app, CommandBody* chosen);
void AddEvalCommand(CLI::App& app, CommandBody* chosen);
void AddInspectCommand(CLI::App& app, CommandBody* chosen);
void AddPlanCommand(CLI::App& app, CommandBody* chosen);
void AddRunCommand(CLI::App& app, CommandBody* chosen);
void AddSynthCommand(CLI::App& app, CommandBody* chosen);
void AddTraceCommand(CLI::App& app, CommandBody* chosen);
void AddTuneCommand(CLI::App& app, CommandBody* chosen);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_COMMAND_H_
