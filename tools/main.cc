// The coldstream command: picks the subcommand, catches what others throw and
// turns it all into an exit code (0, 1 failed, 2 usage, 130 interrupted).
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/command.h"
#include "tools/llama_names.h"

namespace coldstream {
namespace {

using AddCommand = void (*)(CLI::App& app, CommandBody* chosen);
// In the order of --help.
constexpr AddCommand kCommands[] = {
    &AddRunCommand,     &AddBatchCommand, &AddEvalCommand,
    &AddBenchCommand,   &AddPlanCommand,  &AddTuneCommand,
    &AddInspectCommand, &AddSynthCommand, &AddTraceCommand,
};

ExitCode Main(int argc, char** argv) {
  CLI::App app("Runs language models larger than the memory given to them.",
               "coldstream");
  app.set_version_flag("--version", "coldstream " COLDSTREAM_VERSION);
  app.require_subcommand(1);
  CommandBody chosen;
  for (const AddCommand add : kCommands) add(app, &chosen);
  try {
    std::vector<std::string> arguments =
        WithLongNames({argv + std::min(argc, 1), argv + argc});
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    // Help and the version come this way too, with code 0.
    return app.exit(error, std::cout, std::cerr) == 0 ? ExitCode::kOk
                                                      : ExitCode::kUsage;
  }
  return chosen();
}

// A result that could not be written is a failure, even if all else went well.
ExitCode FlushStdout(ExitCode code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout.good())
    return code;
  std::fputs("coldstream: error: stdout: cannot be written\n", stderr);
  return code == ExitCode::kOk ? ExitCode::kFailed : code;
}

}  // namespace
}  // namespace coldstream

int main(int argc, char** argv) {
  using coldstream::ExitCode;
  try {
    return static_cast<int>(
        coldstream::FlushStdout(coldstream::Main(argc, argv)));
  } catch (const std::bad_alloc&) {
    std::fputs("coldstream: error: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coldstream: error: %s\n", error.what());
  }
  return static_cast<int>(ExitCode::kFailed);
}
