#include "tests/tools/command_run.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

// A machine's own device is none of a test's business.
std::vector<std::string> WithDeviceFlag(std::vector<std::string> arguments) {
  const std::vector<std::string> computing = {"run", "eval", "bench", "tune",
                                              "plan"};
  const auto holds = [](const std::vector<std::string>& all,
                        const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  if (arguments.empty() || !holds(computing, arguments[0]) ||
      holds(arguments, "--device"))
    return arguments;
  arguments.insert(arguments.begin() + 1, {"--device", "cpu"});
  return arguments;
}

std::string Contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void Redirect(const std::string& path, int descriptor) {
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(126);
  close(file);
}

// In the child; does not return.
[[noreturn]] void Execute(const std::vector<std::string>& arguments,
                          const RunLimits& limits, const std::string& out,
                          const std::string& error) {
  Redirect(limits.stdout_path.empty() ? out : limits.stdout_path,
           STDOUT_FILENO);
  Redirect(limits.stderr_path.empty() ? error : limits.stderr_path,
           STDERR_FILENO);
  if (limits.file_bytes) {
    const rlimit limit = {*limits.file_bytes, *limits.file_bytes};
    std::signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
  }
  if (setenv("COLDSTREAM_PROFILE", limits.profile.c_str(), 1) != 0) _exit(126);
  std::vector<char*> argv;
  std::string binary =
      limits.with_device ? COLDSTREAM_WITH_DEVICE_BINARY : COLDSTREAM_BINARY;
  std::vector<std::string> copies = WithDeviceFlag(arguments);
  argv.push_back(binary.data());
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

// After ten seconds the command is ended by force, if it has not ended by
// itself: a test that fails must not hang.
void InterruptWhen(pid_t child, const std::function<bool()>& condition) {
  constexpr useconds_t kPollUs = 2000;
  for (useconds_t waited = 0; waited < 10'000'000; waited += kPollUs) {
    if (condition()) {
      kill(child, SIGINT);
      return;
    }
    usleep(kPollUs);
  }
  kill(child, SIGKILL);
}

}  // namespace

CommandRun RunColdstream(const std::vector<std::string>& arguments,
                         const RunLimits& limits) {
  const TempDir folder;
  const std::string out = folder.Path("out");
  const std::string error = folder.Path("error");
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) Execute(arguments, limits, out, error);
  if (limits.interrupt_when) InterruptWhen(child, limits.interrupt_when);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CommandRun run;
  if (WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) run.signal = WTERMSIG(status);
  run.out = Contents(out);
  run.error = Contents(error);
  return run;
}

}  // namespace coldstream
