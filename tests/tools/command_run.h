// Runs the coldstream binary as a user would, and keeps what it said.
//
//   const CommandRun run = RunColdstream({"inspect", path});
//   EXPECT_EQ(run.exit_code, 0) << run.error;
#ifndef COLDSTREAM_TESTS_TOOLS_COMMAND_RUN_H_
#define COLDSTREAM_TESTS_TOOLS_COMMAND_RUN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace coldstream {

struct CommandRun {
  int exit_code = -1;  // -1 if a signal ended it
  int signal = 0;      // that signal
  std::string out;     // stdout
  std::string error;   // stderr
};

struct RunLimits {
  // RLIMIT_FSIZE, with SIGXFSZ ignored: writes past it fail with EFBIG.
  std::optional<uint64_t> file_bytes = std::nullopt;
  // SIGINT as soon as this is true; asked every few milliseconds.
  std::function<bool()> interrupt_when = {};
  // Where stdout goes instead of CommandRun::out, e.g. "/dev/full".
  std::string stdout_path = {};
  // Likewise stderr, e.g. a terminal.
  std::string stderr_path = {};
  // Runs the program whose CUDA device is one of the tests.
  bool with_device = false;
  // COLDSTREAM_PROFILE: the user's own is none of a test's business.
  std::string profile = "off";
};

CommandRun RunColdstream(const std::vector<std::string>& arguments,
                         const RunLimits& limits = {});

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_TOOLS_COMMAND_RUN_H_
