// `coldstream bench` as a user meets it.
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"
#include "tests/tools/command_model_test.h"
#include "tests/tools/command_run.h"
#include "tests/tools/pseudo_terminal.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

constexpr char kStreamed[] = "27M";  // about half of the weights are cold

class BenchCommandTest : public CommandModelTest {
 protected:
  static void SetUpTestSuite() {
    setenv("TERM", "xterm", 1);
    CommandModelTest::SetUpTestSuite();
  }
  static CommandRun Bench(const std::vector<std::string>& more,
                          const std::string& model) {
    std::vector<std::string> arguments = {"bench", "-m", model};
    const std::vector<std::vector<std::string>> defaults = {
        {"-p", "5"}, {"-n", "3"}, {"-r", "2"}, {"--probe-seconds", "0"}};
    for (const std::vector<std::string>& flag : defaults) {
      if (std::find(more.begin(), more.end(), flag[0]) == more.end())
        arguments.insert(arguments.end(), flag.begin(), flag.end());
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunColdstream(arguments);
  }
  static CommandRun Bench(const std::vector<std::string>& more) {
    return Bench(more, Model());
  }
  static nlohmann::json Report(std::vector<std::string> more) {
    more.push_back("--json");
    const CommandRun run = Bench(more);
    EXPECT_EQ(run.exit_code, 0) << run.error;
    return nlohmann::json::parse(run.out);
  }
};

TEST_F(BenchCommandTest, ThePhasesAreMeasuredApart) {
  const nlohmann::json report =
      Report({"--ram", kStreamed, "-b", "2", "--warmup", "2"});
  EXPECT_EQ(report["prompt"]["tokens"], 5);
  EXPECT_EQ(report["generation"]["tokens"], 3);
  EXPECT_EQ(report["prompt"]["passes"], 2 * 3);  // 2 + 2 + 1 tokens, two runs
  EXPECT_EQ(report["generation"]["passes"], 2 * 3);
  for (const char* phase : {"prompt", "generation"}) {
    const nlohmann::json& figures = report[phase];
    EXPECT_EQ(figures["runs"].size(), 2u);
    EXPECT_GT(figures["tokens_per_second"]["median"], 0);
    EXPECT_GE(figures["tokens_per_second"]["best"],
              figures["tokens_per_second"]["median"]);
  }
}

TEST_F(BenchCommandTest, MeasuredPassesReadTheColdUnitsAlone) {
  const nlohmann::json report = Report({"--ram", kStreamed});
  const uint64_t pass = report["pass_read_bytes"];
  EXPECT_GT(pass, 0u);
  const uint64_t read = report["generation"]["bytes_read"]["reader"];
  const uint64_t passes = report["generation"]["passes"];
  EXPECT_GE(read, passes * pass);
  EXPECT_LE(read, passes * (pass + 8192));  // a row of the embedding table
  if (!kSanitized) {
    EXPECT_LE(report["peak_rss_bytes"], report["ram_bytes"]);
  }
}

TEST_F(BenchCommandTest, DirectReadsAgreeWithTheKernelsCount) {
  const nlohmann::json report = Report({"--ram", kStreamed});
  const nlohmann::json& read = report["generation"]["bytes_read"];
  if (report["not_disk_speed"].is_string() || read["proc_self_io"].is_null())
    GTEST_SKIP() << "no disk under the temporary folder";
  EXPECT_NEAR(read["proc_self_io"].get<double>(), read["reader"].get<double>(),
              0.01 * read["reader"].get<double>());
}

TEST_F(BenchCommandTest, AResidentModelHasNoDiskFigures) {
  const nlohmann::json report = Report({"--ram", "1G"});
  EXPECT_EQ(report["pass_read_bytes"], 0);
  EXPECT_TRUE(report["generation"]["disk_GBps"].is_null());
  EXPECT_TRUE(report["generation"]["disk_busy_percent"].is_null());
  EXPECT_FALSE(report["generation"]["ram_GBps"].is_null());
}

TEST_F(BenchCommandTest, BufferedReadsAreLabelled) {
  const nlohmann::json report =
      Report({"--ram", kStreamed, "--direct", "off", "--warm"});
  EXPECT_TRUE(report["not_disk_speed"].is_string());
  EXPECT_TRUE(report["generation"]["disk_GBps"].is_null());
  EXPECT_EQ(report["page_cache"]["state"], "warm");
  const CommandRun run = Bench({"--ram", kStreamed, "--direct", "off"});
  EXPECT_THAT(run.out, HasSubstr("not disk speed: "));
}

TEST_F(BenchCommandTest, AModelOnTmpfsIsLabelled) {
  struct statfs info = {};
  constexpr auto kTmpfs = 0x01021994;
  if (statfs("/dev/shm", &info) != 0 || info.f_type != kTmpfs)
    GTEST_SKIP() << "no tmpfs to write to";
  const std::string copy =
      "/dev/shm/coldstream-bench-" + std::to_string(getpid()) + ".gguf";
  std::error_code error;
  std::filesystem::copy_file(Model(), copy, error);
  if (error) GTEST_SKIP() << error.message();
  const CommandRun run = Bench({"--ram", kStreamed, "--json"}, copy);
  std::filesystem::remove(copy);
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const nlohmann::json report = nlohmann::json::parse(run.out);
  EXPECT_THAT(report["not_disk_speed"].get<std::string>(), HasSubstr("tmpfs"));
}

TEST_F(BenchCommandTest, ColdDropsTheFileAndSaysWhatRemained) {
  const nlohmann::json report = Report({"--ram", kStreamed, "--cold"});
  const nlohmann::json& cache = report["page_cache"];
  EXPECT_EQ(cache["state"], "cold");
  if (report["not_disk_speed"].is_string() ||
      cache["cached_percent_before"].is_null())
    GTEST_SKIP() << "no disk under the temporary folder";
  EXPECT_EQ(cache["cached_percent_before"], 0);
}

TEST_F(BenchCommandTest, CeilingsAreMeasuredInTheSameRun) {
  const nlohmann::json streamed =
      Report({"--ram", kStreamed, "--probe-seconds", "0.2"});
  EXPECT_TRUE(streamed["ceilings"]["disk_before"]["GBps"].is_number());
  EXPECT_TRUE(streamed["ceilings"]["disk_after"]["GBps"].is_number());
  // No buffer that is larger than the caches fits.
  EXPECT_TRUE(streamed["ceilings"]["ram_GBps"].is_null());
  const nlohmann::json resident =
      Report({"--ram", "8G", "--probe-seconds", "0.2"});
  EXPECT_TRUE(resident["ceilings"]["disk_before"].is_null());
  EXPECT_TRUE(resident["ceilings"]["ram_GBps"].is_number());
}

TEST_F(BenchCommandTest, ATerminalShowsHowItIsGettingOn) {
  PseudoTerminal terminal(100);
  std::string text;
  const CommandRun run =
      RunColdstream({"bench", "-m", Model(), "-p", "4", "-n", "100000",
                     "--probe-seconds", "0", "--ram", "2G"},
                    {.interrupt_when =
                         [&] {
                           text += terminal.Read(0);
                           return text.find("tok/s") != std::string::npos;
                         },
                     .stderr_path = terminal.path()});
  text += terminal.Read(0);
  EXPECT_EQ(run.exit_code, 130);
  EXPECT_THAT(text, HasSubstr("\rwarm-up 1/1 generated "));
  EXPECT_THAT(text, EndsWith("\r\x1b[K"));
  EXPECT_THAT(run.out, IsEmpty());
}

TEST_F(BenchCommandTest, APhaseOfNoTokensIsLeftOut) {
  const nlohmann::json prompt_only = Report({"-n", "0", "--ram", "1G"});
  EXPECT_TRUE(prompt_only["generation"].is_null());
  EXPECT_TRUE(prompt_only["prompt"].is_object());
  const nlohmann::json generation_only = Report({"-p", "0", "--ram", "1G"});
  EXPECT_TRUE(generation_only["prompt"].is_null());
  EXPECT_EQ(generation_only["generation"]["tokens"], 3);
}

// A sweep of the weights serves all of them.
TEST_F(BenchCommandTest, SequencesAtOnceShareTheirPasses) {
  const auto many = Report({"--ram", "40M", "-np", "6", "-b", "15"});
  EXPECT_EQ(many["sequences"], 6);
  const auto& generation = many["generation"];
  EXPECT_EQ(generation["tokens"], 6 * 3);
  // Two runs; a prompt's pass gives the first token. The first request of a run
  // can be a pass ahead of those that are submitted after it.
  const auto passes = [](int least) {
    return AllOf(Ge(2 * least), Le(2 * (least + 1)));
  };
  EXPECT_THAT(generation["passes"].get<int>(), passes(3));
  EXPECT_EQ(many["prompt"]["tokens"], 6 * 5);
  EXPECT_THAT(many["prompt"]["passes"].get<int>(), passes(2));
}

TEST_F(BenchCommandTest, CsvHasARowPerRun) {
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{"--csv"}, {"-o", "csv"}}) {
    std::vector<std::string> more = {"--ram", "1G", "-r", "3"};
    more.insert(more.end(), how.begin(), how.end());
    const CommandRun run = Bench(more);
    EXPECT_EQ(run.exit_code, 0) << run.error;
    EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 4) << run.out;
    EXPECT_EQ(run.out.substr(0, 4), "run,");
  }
}

TEST_F(BenchCommandTest, WrongFlagsAreUsageErrors) {
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"-p", "0", "-n", "0"},
                                             {"-r", "0"},
                                             {"--warmup", "0"},
                                             {"-p", "-1"},
                                             {"--cold", "--warm"},
                                             {"--json", "--csv"},
                                             {"--json", "-o", "csv"},
                                             {"-o", "sql"},
                                             {"--probe-seconds", "-1"},
                                             {"--probe-seconds", "nan"}}) {
    const CommandRun run = Bench(more);
    EXPECT_EQ(run.exit_code, 2) << ::testing::PrintToString(more) << run.error;
    EXPECT_THAT(run.out, IsEmpty());
  }
}

TEST_F(BenchCommandTest, AContextTooSmallIsOneLineAndExit1) {
  const CommandRun run = Bench({"-c", "6"});
  EXPECT_EQ(run.exit_code, 1) << run.error;
  EXPECT_THAT(run.error, HasSubstr("-c is 6"));
  EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1);
}

}  // namespace
}  // namespace coldstream
