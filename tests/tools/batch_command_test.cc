// coldstream batch, as a user runs it and as a machine kills it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/sanitizers.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/command_model_test.h"
#include "tests/tools/command_run.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class BatchCommandTest : public CommandModelTest {
 protected:
  static std::string Line(const std::string& id, const char* url,
                          const nlohmann::json& body) {
    return nlohmann::json({{"custom_id", id},
                           {"method", "POST"},
                           {"url", url},
                           {"body", body}})
               .dump() +
           "\n";
  }
  static std::string Completion(const std::string& id,
                                const nlohmann::json& body) {
    return Line(id, "/v1/completions", body);
  }
  static std::string Embedding(const std::string& id,
                               const nlohmann::json& body) {
    return Line(id, "/v1/embeddings", body);
  }
  // Of several kinds, greedy and seeded, with common beginnings; of each ten
  // one is an embedding.
  static std::string Requests(int count) {
    std::string lines;
    for (int i = 0; i < count; ++i) {
      if (i % 10 == 9) {
        lines += Embedding("request " + std::to_string(i),
                           {{"input", {std::string(90, 'x'), "y"}}});
        continue;
      }
      lines += Completion(
          "request " + std::to_string(i),
          {{"prompt", std::string(static_cast<size_t>(1 + i % 90), 'x') +
                          std::to_string(i % 7)},
           {"max_tokens", 1 + i % 9},
           {"temperature", i % 3 == 0 ? 1 : 0},
           {"ignore_eos", true}});
    }
    return lines;
  }
  std::vector<std::string> Arguments(
      const std::string& in, const std::string& out,
      const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "batch", "--device", "cpu", "-m", Model(), "--ram", "40M", "-c",
        "128",   "-b",       "64",  "-i", in,      "-o",    out};
    if (std::find(more.begin(), more.end(), "--parallel") == more.end())
      arguments.insert(arguments.end(), {"--parallel", "8"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static std::vector<nlohmann::json> Lines(const std::string& text) {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
      lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  static std::string Contents(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  // By custom_id, each of which comes once.
  static std::map<std::string, std::string> ById(const std::string& text) {
    std::map<std::string, std::string> by_id;
    for (const nlohmann::json& line : Lines(text)) {
      EXPECT_TRUE(by_id.emplace(line["custom_id"], line.dump()).second)
          << line["custom_id"];
    }
    return by_id;
  }

  TempDir temp_;
};

TEST_F(BatchCommandTest, EveryLineHasOneResultWhateverIsWrongWithIt) {
  const std::string in = temp_.Write(
      "in.jsonl",
      Completion("good", {{"prompt", "Hello"}, {"max_tokens", 3}}) +
          "this is no JSON\n\n" +
          Completion("too long", {{"prompt", std::string(500, 'x')}}) +
          Completion("unknown", {{"prompt", "a"}, {"best_of", 3}}) +
          Completion("good", {{"prompt", "again"}}) +
          Completion("last", {{"prompt", "b"}, {"max_tokens", 2}}));
  const CommandRun run =
      RunColdstream(Arguments(in, "-", {"--order", "input"}));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, AllOf(HasSubstr("2 requests done, 4 failed"),
                               HasSubstr("4 of the requests failed")));
  const auto lines = Lines(run.out);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0]["custom_id"], "good");
  EXPECT_EQ(lines[0]["response"]["status_code"], 200);
  EXPECT_EQ(lines[0]["response"]["body"]["usage"]["completion_tokens"], 3);
  EXPECT_EQ(lines[0]["error"], nullptr);
  for (const size_t bad : {1, 2, 3, 4}) {
    EXPECT_EQ(lines[bad]["response"]["status_code"], 400) << lines[bad];
    EXPECT_NE(lines[bad]["error"], nullptr);
  }
  EXPECT_THAT(lines[2].dump(), HasSubstr("128"));
  EXPECT_THAT(lines[3].dump(), HasSubstr("best_of"));
  EXPECT_EQ(lines[5]["custom_id"], "last");
}

TEST_F(BatchCommandTest, ResultsDependOnNothingButTheRequest) {
  const std::string in = temp_.Write("in.jsonl", Requests(40));
  const auto results = [&](const std::vector<std::string>& more) {
    const CommandRun run = RunColdstream(Arguments(in, "-", more));
    EXPECT_EQ(run.exit_code, 0) << run.error;
    return ById(run.out);
  };
  const auto expected = results({});
  EXPECT_EQ(expected.size(), 40u);
  EXPECT_EQ(results({"--parallel", "1"}), expected);
  EXPECT_EQ(results({"--kv-tokens", "256", "--order", "input"}), expected);
}

TEST_F(BatchCommandTest, APassTakesNoMoreTokensThanItMay) {
  const std::string in = temp_.Write("in.jsonl", Requests(12));
  std::vector<std::string> arguments = Arguments(in, "-");
  const CommandRun wide = RunColdstream(arguments);
  const auto flag = std::find(arguments.begin(), arguments.end(), "-b");
  ASSERT_NE(flag, arguments.end());
  flag[0] = "--batch-tokens";
  flag[1] = "3";  // of eight sequences
  const CommandRun narrow = RunColdstream(arguments);
  EXPECT_EQ(ById(narrow.out), ById(wide.out));
  int tokens = 0, passes = 0;
  std::istringstream lines(narrow.error);
  for (std::string line; std::getline(lines, line) && passes == 0;)
    std::sscanf(line.c_str(), "%d tokens computed in %d passes", &tokens,
                &passes);
  EXPECT_GT(passes, 0) << narrow.error;
  EXPECT_LE(tokens, 3 * passes);
  EXPECT_GT(tokens, 2 * passes);
}

// Lines of every form of input, among some that answer.
TEST_F(BatchCommandTest, EmbeddingsComeAmongAnswersAndDependOnTheirLineAlone) {
  std::string requests;
  for (int i = 0; i < 12; ++i) {
    const std::string text(static_cast<size_t>(5 + 9 * i), 'y');
    requests += Embedding("one " + std::to_string(i), {{"input", text}});
    requests += Embedding("many " + std::to_string(i),
                          {{"input", {text, "z" + text, "y"}},
                           {"pooling", i % 2 == 0 ? "last" : "cls"}});
    requests += Completion("text " + std::to_string(i),
                           {{"prompt", text}, {"max_tokens", 3}});
  }
  const std::string in = temp_.Write("in.jsonl", requests);
  const auto results = [&](const std::vector<std::string>& more) {
    const CommandRun run = RunColdstream(Arguments(in, "-", more));
    EXPECT_EQ(run.exit_code, 0) << run.error;
    return ById(run.out);
  };
  const auto expected = results({});
  EXPECT_EQ(expected.size(), 36u);
  EXPECT_EQ(results({"--parallel", "1"}), expected);
  EXPECT_EQ(results({"--kv-tokens", "256", "--order", "input"}), expected);
  const auto many = nlohmann::json::parse(expected.at("many 3"));
  const auto& data = many["response"]["body"]["data"];
  ASSERT_EQ(data.size(), 3u);
  EXPECT_EQ(data[2]["index"], 2);
  double squares = 0;
  for (const double value : data[2]["embedding"]) squares += value * value;
  EXPECT_EQ(data[2]["embedding"].size(), 256u);
  EXPECT_NEAR(squares, 1, 1e-6);
  EXPECT_EQ(many["response"]["body"]["usage"]["prompt_tokens"],
            many["response"]["body"]["usage"]["total_tokens"]);
}

TEST_F(BatchCommandTest, PoolingOfTheLineThenTheCommandThenTheModelCounts) {
  const auto vector = [&](const nlohmann::json& body,
                          const std::vector<std::string>& more) {
    nlohmann::json with_text = body;
    with_text["input"] = "some text";
    const std::string in = temp_.Write("in.jsonl", Embedding("a", with_text));
    const CommandRun run = RunColdstream(Arguments(in, "-", more));
    EXPECT_EQ(run.exit_code, 0) << run.error;
    return Lines(run.out)[0]["response"]["body"]["data"][0]["embedding"];
  };
  const auto last = vector({{"pooling", "last"}}, {});
  const auto mean = vector({{"pooling", "mean"}}, {});
  EXPECT_NE(last, mean);
  EXPECT_EQ(vector(nlohmann::json::object(), {}), mean);
  EXPECT_EQ(vector({{"dimensions", 256}}, {"--pooling", "last"}), last);
  EXPECT_EQ(vector({{"pooling", "mean"}}, {"--pooling", "last"}), mean);
}

TEST_F(BatchCommandTest, WhatIsWrongWithAnEmbeddingIsAnErrorOfItsLine) {
  const std::string in = temp_.Write(
      "in.jsonl",
      Embedding("cut", {{"input", "a"}, {"dimensions", 64}}) +
          Embedding("too long", {{"input", {"a", std::string(500, 'x')}}}) +
          Embedding("not a token", {{"input", {1, 1 << 30}}}) +
          Embedding("good", {{"input", "a"}, {"encoding_format", "base64"}}));
  const std::string out = temp_.Path("out.jsonl");
  const CommandRun run =
      RunColdstream(Arguments(in, out, {"--order", "input"}));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("1 requests done, 3 failed"));
  const auto lines = Lines(Contents(out));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0].dump(), HasSubstr("expected 256"));
  EXPECT_THAT(lines[1].dump(), AllOf(HasSubstr("input 1"), HasSubstr("128")));
  EXPECT_THAT(lines[2].dump(), HasSubstr("1073741824"));
  EXPECT_EQ(lines[3]["error"], nullptr);
  // Another pooling is another job.
  const CommandRun other = RunColdstream(
      Arguments(in, out, {"--order", "input", "--pooling", "last"}));
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.error, HasSubstr("pooling last"));
}

TEST_F(BatchCommandTest, ShardsTogetherAreTheWhole) {
  const std::string in = temp_.Write("in.jsonl", Requests(20));
  std::map<std::string, std::string> all;
  for (const std::string shard : {"1/3", "2/3", "3/3"}) {
    const CommandRun run =
        RunColdstream(Arguments(in, "-", {"--shard", shard}));
    EXPECT_EQ(run.exit_code, 0) << run.error;
    all.merge(ById(run.out));
  }
  EXPECT_EQ(all, ById(RunColdstream(Arguments(in, "-")).out));
}

TEST_F(BatchCommandTest, OtherOptionsOrAnotherInputAreNotGoneOnWith) {
  const std::string in = temp_.Write("in.jsonl", Requests(3));
  const std::string out = temp_.Path("out.jsonl");
  ASSERT_EQ(RunColdstream(Arguments(in, out)).exit_code, 0);
  const std::string before = Contents(out);
  const CommandRun options = RunColdstream(Arguments(in, out, {"--seed", "5"}));
  EXPECT_EQ(options.exit_code, 1);
  EXPECT_THAT(options.error, HasSubstr("seed 5"));
  const CommandRun type =
      RunColdstream(Arguments(in, out, {"-ctk", "q8_0", "-ctv", "q8_0"}));
  EXPECT_EQ(type.exit_code, 1);
  EXPECT_THAT(type.error, HasSubstr("KV cache of q8_0"));
  const std::string other = temp_.Write("other.jsonl", Requests(4));
  EXPECT_EQ(RunColdstream(Arguments(other, out)).exit_code, 1);
  EXPECT_EQ(Contents(out), before);
}

// Killed at any moment and started again: every request has one result, the
// one of a run that was left alone.
TEST_F(BatchCommandTest, AJobThatIsKilledAgainAndAgainLosesAndRepeatsNothing) {
  const int requests = kSanitized ? 20 : 60;
  const std::string in = temp_.Write("in.jsonl", Requests(requests));
  const std::string out = temp_.Path("out.jsonl");
  const auto expected = ById(RunColdstream(Arguments(in, "-")).out);
  ASSERT_EQ(expected.size(), static_cast<size_t>(requests));
  std::mt19937 random(11);
  int kills = 0;
  bool ended = false;
  double patience_ms = 20;  // longer and longer, so that it comes to an end
  for (int start = 0; start < 60 && !ended; ++start) {
    patience_ms *= 1.2;
    std::vector<std::string> arguments = Arguments(in, out);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::vector<char*> argv;
      std::string binary = COLDSTREAM_BINARY;
      argv.push_back(binary.data());
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      setenv("COLDSTREAM_PROFILE", "off", 1);
      if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(126);
      execv(argv[0], argv.data());
      _exit(127);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(
        random() % static_cast<unsigned>(patience_ms)));
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == 0) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      ended = true;
    } else {
      ++kills;
    }
  }
  EXPECT_TRUE(ended);
  EXPECT_GE(kills, 3);
  EXPECT_TRUE(ById(Contents(out)) == expected);  // too long to be printed
  const CommandRun again = RunColdstream(Arguments(in, out));
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.error,
              AllOf(HasSubstr("0 requests done"), HasSubstr("0 generated")));
}

TEST_F(BatchCommandTest, WrongFlagsAreUsageErrors) {
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--shard", "0/3"},
                                             {"--shard", "4/3"},
                                             {"--shard", "a"},
                                             {"--order", "random"},
                                             {"--parallel", "0"},
                                             {"--json"}}) {
    EXPECT_EQ(RunColdstream(Arguments("none", "-", more)).exit_code, 2)
        << more.back();
  }
  const CommandRun missing = RunColdstream(Arguments("/nowhere.jsonl", "-"));
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.error, HasSubstr("/nowhere.jsonl"));
}

}  // namespace
}  // namespace coldstream
