// `coldstream run` and `eval` as a user meets them.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RunCommandTest : public CommandModelTest {
 protected:
  static CommandRun Run(std::vector<std::string> more,
                        const RunLimits& limits = {}) {
    std::vector<std::string> arguments = {"run", "-m", Model(), "--temp", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunColdstream(arguments, limits);
  }
  static nlohmann::json Report(std::vector<std::string> more) {
    more.push_back("--json");
    const CommandRun run = Run(more);
    EXPECT_EQ(run.exit_code, 0) << run.error;
    return nlohmann::json::parse(run.out);
  }
};

TEST_F(RunCommandTest, TextGoesToStdoutAndTheReportToStderr) {
  const CommandRun run =
      Run({"-p", "Hello", "-n", "8", "--ignore-eos", "--ram", "1G"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, Not(HasSubstr("tok/s")));
  EXPECT_THAT(run.error, AllOf(HasSubstr("prompt 5 tokens"),
                               HasSubstr("generated 7 tokens"),
                               HasSubstr("resident weights")));
}

TEST_F(RunCommandTest, TheReportHasEveryFieldPromised) {
  const nlohmann::json report =
      Report({"-p", "Hello", "-n", "4", "--ignore-eos", "--ram", "1G"});
  for (const char* key :
       {"prompt_tokens", "generated_tokens", "prompt_tokens_per_second",
        "tokens_per_second", "passes", "bytes_from_disk", "weights_bytes",
        "resident_bytes", "slot_bytes", "kv_bytes", "peak_rss_bytes",
        "disk_GBps", "io_backend", "direct_io", "prefetch_depth", "isa",
        "threads", "text", "finish_reason"}) {
    EXPECT_TRUE(report.contains(key)) << key;
    EXPECT_FALSE(report[key].is_null()) << key;
  }
  EXPECT_EQ(report["prompt_tokens"], 5);
  EXPECT_EQ(report["generated_tokens"], 4);
  EXPECT_EQ(report["passes"], 4);
}

TEST_F(RunCommandTest, TextIsTheSameAtEveryBudgetAndTheCapIsKept) {
  const std::vector<std::string> request = {"-p", "Once upon a time", "-n",
                                            "12", "--ignore-eos"};
  const auto with = [&](const std::string& ram, const std::string& depth) {
    std::vector<std::string> more = request;
    more.insert(more.end(), {"--ram", ram, "--prefetch-depth", depth});
    return Report(more);
  };
  const std::string text = with("1G", "2")["text"];
  for (const char* ram : {"22M", "24M", "27M", "31M"}) {
    for (const char* depth : {"1", "2"}) {
      const nlohmann::json report = with(ram, depth);
      EXPECT_EQ(report["text"], text) << ram;
      EXPECT_GT(report["pass_read_bytes"], 0) << ram;
      EXPECT_LE(report["planned_bytes"], report["ram_bytes"]);
      // Nothing is read that the plan does not know of, but embedding rows.
      const uint64_t planned = report["first_pass_read_bytes"].get<uint64_t>() +
                               (report["passes"].get<uint64_t>() - 1) *
                                   report["pass_read_bytes"].get<uint64_t>();
      const uint64_t read = report["bytes_from_disk"];
      EXPECT_GE(read, planned);
      EXPECT_LE(read, planned + 8192u * 28u);
      // Sanitizers' own memory dwarfs the model's.
      if (!kSanitized) {
        EXPECT_LE(report["peak_rss_bytes"], report["ram_bytes"]) << ram;
      }
    }
  }
}

TEST_F(RunCommandTest, TheLeastBudgetOfTheErrorWorks) {
  const CommandRun refused = Run({"-p", "Hello", "-n", "2", "--ram", "2M"});
  EXPECT_EQ(refused.exit_code, 1);
  const std::string phrase = "the least that works is --ram ";
  const size_t at = refused.error.find(phrase);
  ASSERT_NE(at, std::string::npos) << refused.error;
  const std::string least = refused.error.substr(
      at + phrase.size(),
      refused.error.find(' ', at + phrase.size()) - at - phrase.size());
  const CommandRun run = Run({"-p", "Hello", "-n", "2", "--ram", least});
  EXPECT_EQ(run.exit_code, 0) << run.error;
}

TEST_F(RunCommandTest, EveryReaderGivesTheSameText) {
  std::string text;
  for (const char* io : {"auto", "uring", "pread"}) {
    for (const char* direct : {"auto", "off"}) {
      const nlohmann::json report = Report(
          {"-p", "Hello", "-n", "6", "--ignore-eos", "--ram", "26M", "--io", io,
           "--direct", direct, "--io-depth", "3", "--io-chunk", "128k"});
      if (text.empty()) text = report["text"];
      EXPECT_EQ(report["text"], text);
      if (std::string(io) != "auto") {
        EXPECT_EQ(report["io_backend"], io);
      }
      if (std::string(direct) == "off") {
        EXPECT_EQ(report["direct_io"], false);
      }
    }
  }
}

TEST_F(RunCommandTest, WrongValuesAreUsageErrors) {
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{
           {"-p", "x", "--prefetch-depth", "0"},
           {"-p", "x", "--prefetch-depth", "65"},
           {"-p", "x", "--ram", "lots"},
           {"-p", "x", "--io", "magic"},
           {"-p", "x", "--temp", "-1"},
           {"-p", "x", "--temp", "nan"},
           {"-p", "x", "--top-p", "2"},
           {"-p", "x", "-n", "-2"},
           {"-p", "x", "-f", "y"},
           {"-p", "x", "--io-chunk", "1000"}}) {
    const CommandRun run = Run(more);
    EXPECT_EQ(run.exit_code, 2) << ::testing::PrintToString(more) << run.error;
    EXPECT_THAT(run.out, IsEmpty());
  }
}

TEST_F(RunCommandTest, WhatCannotBeDoneIsOneLineAndExit1) {
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"-p", ""},
                                             {"-p", "Hello there", "-c", "3"},
                                             {"-f", "/nonexistent/prompt"},
                                             {"-p", "x", "--pre", "klingon"}}) {
    const CommandRun run = Run(more);
    EXPECT_EQ(run.exit_code, 1) << ::testing::PrintToString(more) << run.error;
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1)
        << run.error;
    EXPECT_THAT(run.out, IsEmpty());
  }
}

TEST_F(RunCommandTest, CtrlCEndsWith130) {
  int polls = 0;
  const CommandRun run = Run({"-p", "Hello", "-n", "-1", "-c", "200000",
                              "--ignore-eos", "--ram", "1G"},
                             {.interrupt_when = [&] { return ++polls > 150; }});
  EXPECT_EQ(run.exit_code, 130) << run.error;
  EXPECT_THAT(run.out, Not(IsEmpty()));
}

TEST_F(RunCommandTest, NoStatusLineMeetsTextOnATerminal) {
  setenv("TERM", "xterm", 1);
  PseudoTerminal terminal(100);
  // Before the text begins there may be a status line; two seconds later,
  // when the line would long have come up, there must be text alone.
  std::string late;
  int polls = 0;
  const CommandRun run = Run({"-p", "Hello", "-n", "-1", "-c", "200000",
                              "--ignore-eos", "--ram", "2G"},
                             {.interrupt_when =
                                  [&] {
                                    const std::string text = terminal.Read(0);
                                    if (++polls > 1000) late += text;
                                    return polls > 1800;
                                  },
                              .stdout_path = terminal.path(),
                              .stderr_path = terminal.path()});
  EXPECT_EQ(run.exit_code, 130) << run.error;
  EXPECT_EQ(late.find("tok/s"), std::string::npos) << late;
}

TEST_F(RunCommandTest, AStatusLineShowsWhileTextGoesElsewhere) {
  setenv("TERM", "xterm", 1);
  PseudoTerminal terminal(100);
  std::string text;
  const CommandRun run =
      Run({"-p", "Hello", "-n", "-1", "-c", "200000", "--ignore-eos", "--ram",
           "2G"},
          {.interrupt_when =
               [&] {
                 text += terminal.Read(0);
                 return text.find("tok/s") != std::string::npos;
               },
           .stderr_path = terminal.path()});
  text += terminal.Read(0);
  EXPECT_EQ(run.exit_code, 130) << run.error;
  EXPECT_THAT(run.out, Not(IsEmpty()));
  // The line is gone before the report begins.
  EXPECT_THAT(text, AllOf(HasSubstr("\rgenerated "),
                          HasSubstr("\r\x1b[Kprompt 5 tokens")));
}

TEST_F(RunCommandTest, AFullStdoutFailsTheRun) {
  const CommandRun run = Run({"-p", "Hello", "-n", "4", "--ignore-eos"},
                             {.stdout_path = "/dev/full"});
  EXPECT_EQ(run.exit_code, 1) << run.error;
}

TEST_F(RunCommandTest, EvalWritesLogitsThatDoNotDependOnTheChunk) {
  std::vector<std::string> files;
  for (const char* chunk : {"1", "3", "8"}) {
    const std::string out = dir_->Path(std::string("logits.") + chunk);
    const CommandRun run = RunColdstream(
        {"eval", "-m", Model(), "--ids", "1,2,3,4,5,6,7,8", "--chunk", chunk,
         "--logits-out", out, "--ram", "28M", "--json"});
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const nlohmann::json report = nlohmann::json::parse(run.out);
    EXPECT_EQ(report["top"].size(), 5u);
    EXPECT_GT(report["perplexity"], 1.0);
    EXPECT_EQ(report["prompt_tokens"], 8);
    std::ifstream in(out, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in),
                       std::istreambuf_iterator<char>());
    EXPECT_EQ(files.back().size(), 8u * 300u * 4u);
  }
  EXPECT_EQ(files[0], files[1]);
  EXPECT_EQ(files[0], files[2]);
}

TEST_F(RunCommandTest, EvalOfIdsOutsideTheVocabularyNamesTheId) {
  const CommandRun run =
      RunColdstream({"eval", "-m", Model(), "--ids", "1,300"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("300"));
}

}  // namespace
}  // namespace coldstream
