// The command as a whole: exit codes, and what goes to which stream.
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/command_run.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(CommandLineTest, WrongUsageExits2WithStdoutClean) {
  const std::vector<std::vector<std::string>> kCases = {
      {},
      {"frobnicate"},
      {"--no-such-flag"},
      {"inspect"},
      {"inspect", "a.gguf", "--no-such-flag"},
      {"synth"},
      {"synth", "--preset", "llama3-8b"},
      {"synth", "--preset", "gpt-5", "-o", "x.gguf"},
      {"synth", "--preset", "llama3-8b", "--type", "q9", "-o", "x.gguf"},
      {"synth", "--layers", "0", "-o", "x.gguf"},
      {"synth", "--layers", "2", "-o", "x.gguf"},
      {"synth", "--preset", "llama3-8b", "--tied", "--untied", "--dry-run"},
      {"synth", "--preset", "llama3-8b", "--seed", "-1", "--dry-run"},
      {"synth", "--preset", "llama3-8b", "--rope-base", "0", "--dry-run"},
  };
  for (const std::vector<std::string>& arguments : kCases) {
    const CommandRun run = RunColdstream(arguments);
    const std::string line = ::testing::PrintToString(arguments);
    EXPECT_EQ(run.exit_code, 2) << line << run.error;
    EXPECT_THAT(run.out, IsEmpty()) << line;
    EXPECT_THAT(run.error, HasSubstr("--help")) << line;
  }
}

TEST(CommandLineTest, AWrongValueIsNamedWithItsOptionAndRange) {
  const CommandRun run =
      RunColdstream({"synth", "--layers", "5000", "-o", "x.gguf"});
  EXPECT_THAT(run.error, HasSubstr("--layers"));
  EXPECT_THAT(run.error, HasSubstr("1 to 1024"));
  EXPECT_THAT(run.error, HasSubstr("'5000'"));
}

TEST(CommandLineTest, HelpAndVersionGoToStdout) {
  const std::vector<std::vector<std::string>> kCases = {
      {"--help"}, {"inspect", "--help"}, {"synth", "--help"}, {"--version"}};
  for (const std::vector<std::string>& arguments : kCases) {
    const CommandRun run = RunColdstream(arguments);
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.out, HasSubstr("coldstream"));
    EXPECT_THAT(run.error, IsEmpty());
  }
}

TEST(CommandLineTest, EverySubcommandIsInTheHelp) {
  const std::string help = RunColdstream({"--help"}).out;
  for (const char* name : {"inspect", "synth"})
    EXPECT_THAT(help, HasSubstr(name));
}

TEST(CommandLineTest, AStdoutThatCannotBeWrittenIsAFailure) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const CommandRun run =
      RunColdstream({"synth", "--preset", "llama3-8b", "--dry-run"},
                    {.stdout_path = "/dev/full"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("stdout"));
}

}  // namespace
}  // namespace coldstream
