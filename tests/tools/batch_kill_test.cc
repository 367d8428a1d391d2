// A batch killed with SIGKILL, again and again: reader, writer and output
// together, with a stand-in for the engine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tools/batch_input.h"
#include "tools/batch_output.h"
#include "tools/batch_result.h"
#include "tools/batch_writer.h"

namespace coldstream {
namespace {

using Json = nlohmann::json;

constexpr int kLines = 300;
constexpr int kKills = 20;

// Some lines are bad, some ids come twice, some prompts are the same.
std::string InputText() {
  std::string text;
  for (int i = 1; i <= kLines; ++i) {
    if (i % 50 == 7) {
      text += "not json\n";
    } else {
      text += absl::StrFormat(
          R"({"custom_id":"r%d","method":"POST","url":"/v1/completions",)"
          R"("body":{"prompt":"prompt %d"}})"
          "\n",
          i % 40 == 3 ? i - 1 : i, i % 10);
    }
  }
  return text;
}

// The answer to a request depends on it alone; long, so that kills tear it.
RequestResult Compute(const BatchLine& line) {
  RequestResult result;
  const std::string& prompt = std::get<std::string>(line.request.input);
  result.generated.text = line.custom_id + " says " + prompt;
  for (int i = 0; i < 200; ++i) result.generated.text += " and on\n";
  return result;
}

// Kills the process in the middle of a line, once so many bytes are through: a
// kill from outside seldom finds the middle of a write.
class TearingSink : public LineSink {
 public:
  TearingSink(LineSink* sink, std::string path, uint64_t bytes)
      : sink_(sink), path_(std::move(path)), bytes_(bytes) {}
  Status Append(std::string_view line) override {
    if (bytes_ < line.size()) {
      const int fd = open(path_.c_str(), O_WRONLY | O_APPEND);
      (void)!write(fd, line.data(), bytes_);
      kill(getpid(), SIGKILL);
    }
    bytes_ -= line.size();
    return sink_->Append(line);
  }
  Status Sync() override { return sink_->Sync(); }

 private:
  LineSink* const sink_;
  const std::string path_;
  uint64_t bytes_;
};

constexpr uint64_t kAllBytes = UINT64_MAX;
constexpr std::chrono::microseconds kNotKilled{0};

class KilledBatch {
 public:
  explicit KilledBatch(BatchWriter::Order order) : order_(order) {
    dir_.Write("in", InputText());
  }

  std::string output() const { return dir_.Path("out"); }
  std::string computed() const { return dir_.Path("computed"); }

  // One run in a process of its own, which dies in the line that goes beyond
  // `bytes`, if it is not killed before; true if it came to its end.
  bool Run(uint64_t bytes, std::chrono::microseconds kill_after) {
    const pid_t child = fork();
    if (child == 0) _exit(RunJob(bytes).ok() ? 0 : 1);
    if (kill_after.count() > 0) {
      std::this_thread::sleep_for(kill_after);
      kill(child, SIGKILL);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) return false;
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return true;
  }

 private:
  Status RunJob(uint64_t bytes) {
    const BatchInputOptions input_options = {.path = dir_.Path("in")};
    ASSIGN_OR_RETURN(const BatchCensus census, TakeBatchCensus(input_options));
    ASSIGN_OR_RETURN(const auto output,
                     BatchOutput::Open({.path = this->output(),
                                        .input = input_options.path,
                                        .job = {.model = "m",
                                                .options = "o",
                                                .input = census.fingerprint}}));
    TearingSink sink(output.get(), this->output(), bytes);
    BatchWriter writer(&sink, {.order = order_,
                               .most_outstanding = 8,
                               .sync_interval = std::chrono::milliseconds(2)});
    std::vector<std::thread> engine;
    ASSIGN_OR_RETURN(const auto input, BatchInput::Open(input_options));
    while (true) {
      ASSIGN_OR_RETURN(auto item, input->Next());
      if (!item) break;
      ASSIGN_OR_RETURN(const bool done,
                       output->IsDone(item->line, item->request.custom_id));
      if (done) continue;
      ASSIGN_OR_RETURN(const auto ticket, writer.Admit());
      engine.emplace_back([this, &writer, ticket, item = *std::move(item)] {
        Answer(item, ticket, &writer);
      });
    }
    for (std::thread& thread : engine) thread.join();
    return writer.Finish();
  }

  void Answer(const BatchInput::Item& item, BatchWriter::Ticket ticket,
              BatchWriter* writer) {
    const BatchKey key = {item.line, item.request.custom_id};
    if (item.request.error) {
      writer->Deliver(ticket, BatchErrorLine(key, *item.request.error));
      return;
    }
    // How long it takes depends on the run, so that the order does too.
    std::this_thread::sleep_for(
        std::chrono::microseconds((getpid() * 7 + item.line * 13) % 400));
    const int log =
        open(computed().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const std::string note = std::to_string(item.line) + "\n";
    (void)!write(log, note.data(), note.size());
    close(log);
    writer->Deliver(
        ticket,
        BatchAnswerLine(key, item.request.request, Compute(item.request),
                        {.tokenizer = nullptr, .name = "m"}));
  }

  const BatchWriter::Order order_;
  TempDir dir_;
};

// Line of the input -> the record, each there once; the last may be torn.
std::map<int64_t, std::string> RecordsOf(const std::string& path) {
  std::map<int64_t, std::string> records;
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // no line end
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded()) continue;
    const int64_t number = LineOfBatchResultId(json["id"].get<std::string>());
    EXPECT_TRUE(records.emplace(number, line).second) << number;
  }
  return records;
}

std::multiset<int64_t> ComputedLines(const std::string& path) {
  std::multiset<int64_t> lines;
  std::ifstream file(path);
  for (int64_t line; file >> line;) lines.insert(line);
  return lines;
}

// The lines of the input in the order of their records.
std::vector<int64_t> OrderOf(const std::string& path) {
  std::vector<int64_t> lines;
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line);)
    lines.push_back(
        LineOfBatchResultId(Json::parse(line)["id"].get<std::string>()));
  return lines;
}

class BatchKillTest : public ::testing::TestWithParam<BatchWriter::Order> {};

TEST_P(BatchKillTest, EveryLineEndsWithOneRecordAndNoneIsComputedAgain) {
  KilledBatch undisturbed(GetParam());
  ASSERT_TRUE(undisturbed.Run(kAllBytes, kNotKilled));
  const auto expected = RecordsOf(undisturbed.output());
  ASSERT_EQ(expected.size(), static_cast<size_t>(kLines));
  const uint64_t bytes = std::filesystem::file_size(undisturbed.output());

  KilledBatch killed(GetParam());
  std::mt19937 random(5);
  for (int kill = 0; kill < kKills; ++kill) {
    const auto before = RecordsOf(killed.output());
    const auto computed_before = ComputedLines(killed.computed());
    // So few bytes that something is left for all of them.
    const auto after = std::chrono::microseconds(random() % 10000);
    ASSERT_FALSE(killed.Run(random() % (bytes / (kKills + 5)),
                            kill % 2 == 0 ? kNotKilled : after));
    const auto computed = ComputedLines(killed.computed());
    auto now = RecordsOf(killed.output());
    for (const auto& [line, record] : before) {
      EXPECT_EQ(computed.count(line), computed_before.count(line)) << line;
      EXPECT_EQ(now[line], record);
    }
  }
  ASSERT_TRUE(killed.Run(kAllBytes, kNotKilled));
  EXPECT_EQ(RecordsOf(killed.output()), expected);
  const std::vector<int64_t> order = OrderOf(killed.output());
  EXPECT_EQ(std::is_sorted(order.begin(), order.end()),
            GetParam() == BatchWriter::Order::kInput);
}

TEST_P(BatchKillTest, AFinishedJobRunAgainComputesNothing) {
  KilledBatch job(GetParam());
  ASSERT_TRUE(job.Run(kAllBytes, kNotKilled));
  const auto computed = ComputedLines(job.computed());
  const auto records = RecordsOf(job.output());
  ASSERT_TRUE(job.Run(kAllBytes, kNotKilled));
  EXPECT_EQ(ComputedLines(job.computed()), computed);
  EXPECT_EQ(RecordsOf(job.output()), records);
}

INSTANTIATE_TEST_SUITE_P(Orders, BatchKillTest,
                         ::testing::Values(BatchWriter::Order::kCompletion,
                                           BatchWriter::Order::kInput));

}  // namespace
}  // namespace coldstream
