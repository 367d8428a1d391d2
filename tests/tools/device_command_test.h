// The fixture of tests that run commands on a device with memory of its own:
// the program's CUDA device is one of the tests (deferred_cuda.cc).
#ifndef COLDSTREAM_TESTS_TOOLS_DEVICE_COMMAND_TEST_H_
#define COLDSTREAM_TESTS_TOOLS_DEVICE_COMMAND_TEST_H_

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/command_model_test.h"
#include "tests/tools/command_run.h"

namespace coldstream {

// Least memory of the device: about half of the weights do not fit.
inline constexpr char kVram[] = "18M";
// Of the host: about half of what does not fit there comes from disk.
inline constexpr char kRam[] = "282M";

class DeviceCommandTest : public CommandModelTest {
 protected:
  static CommandRun Run(std::vector<std::string> arguments,
                        const std::vector<std::string>& more,
                        RunLimits limits = {}) {
    arguments.insert(arguments.end(), {"-m", Model()});
    arguments.insert(arguments.end(), more.begin(), more.end());
    limits.with_device = true;
    return RunColdstream(arguments, limits);
  }
  static nlohmann::json Json(std::vector<std::string> arguments,
                             std::vector<std::string> more,
                             const RunLimits& limits = {}) {
    more.push_back("--json");
    const CommandRun run = Run(std::move(arguments), more, limits);
    EXPECT_EQ(run.exit_code, 0) << run.error;
    return nlohmann::json::parse(run.out, nullptr, false);
  }
  static std::vector<std::string> RunFlags() {
    return {"run", "-p", "Hello", "-n", "6", "--temp", "0", "-c", "32"};
  }
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_TOOLS_DEVICE_COMMAND_TEST_H_
