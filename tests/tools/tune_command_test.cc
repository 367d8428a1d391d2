// `coldstream tune` as a user meets it.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"
#include "tests/tools/command_model_test.h"
#include "tests/tools/command_run.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TuneCommandTest : public CommandModelTest {
 protected:
  void TearDown() override { std::filesystem::remove_all(dir_->Path("cache")); }

  CommandRun Command(const std::string& name,
                     const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {name, "-m", Model()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunColdstream(arguments, {.profile = profile_});
  }
  // A few points of half the weights.
  CommandRun Tune(std::vector<std::string> more) const {
    for (const char* word : {"--ram", "28M", "-c", "64", "-b", "8", "--passes",
                             "1", "--seconds", "1", "--probe-seconds", "0.2"})
      more.emplace_back(word);
    return Command("tune", more);
  }

  std::string profile_ = dir_->Path("cache/profile.json");
};

TEST_F(TuneCommandTest, TheChoiceIsShownWrittenAndUsedByLaterRuns) {
  const CommandRun tune = Tune({});
  ASSERT_EQ(tune.exit_code, 0) << tune.error;
  EXPECT_THAT(tune.out, AllOf(HasSubstr("<- chosen"), HasSubstr("####"),
                              HasSubstr("Written to " + profile_)));
  EXPECT_TRUE(std::filesystem::exists(profile_));
  const CommandRun run =
      Command("run", {"-p", "a", "-n", "2", "--ram", "28M", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("tuned"));
}

TEST_F(TuneCommandTest, ADryRunWritesNothing) {
  const CommandRun tune = Tune({"--dry-run"});
  ASSERT_EQ(tune.exit_code, 0) << tune.error;
  EXPECT_THAT(tune.out, HasSubstr("--dry-run"));
  EXPECT_FALSE(std::filesystem::exists(profile_));
}

TEST_F(TuneCommandTest, JsonIsOneObjectOnStdout) {
  const CommandRun tune = Tune({"--json"});
  ASSERT_EQ(tune.exit_code, 0) << tune.error;
  const nlohmann::json json = nlohmann::json::parse(tune.out);
  EXPECT_FALSE(json["curve"].empty());
  EXPECT_EQ(json["written"], true);
  EXPECT_GT(json["chosen"]["tokens_per_second"], 0);
}

TEST_F(TuneCommandTest, FlagsFixTheirAxes) {
  const CommandRun tune =
      Tune({"--prefetch-depth", "2", "--io-depth", "4", "--io-chunk", "256k",
            "--io", "pread", "--direct", "off", "--json"});
  ASSERT_EQ(tune.exit_code, 0) << tune.error;
  const nlohmann::json json = nlohmann::json::parse(tune.out);
  ASSERT_EQ(json["curve"].size(), 1u);
  EXPECT_EQ(json["chosen"]["prefetch_depth"], 2);
  EXPECT_EQ(json["chosen"]["io_depth"], 4);
  EXPECT_EQ(json["chosen"]["io_chunk"], 256 << 10);
  EXPECT_EQ(json["chosen"]["io"], "pread");
  EXPECT_EQ(json["chosen"]["direct"], "off");
}

TEST_F(TuneCommandTest, WithEverythingResidentThereIsNothingToTune) {
  const CommandRun tune = Command("tune", {"--ram", "1G"});
  EXPECT_EQ(tune.exit_code, 0) << tune.error;
  EXPECT_THAT(tune.out, HasSubstr("nothing to tune"));
  EXPECT_FALSE(std::filesystem::exists(profile_));
}

TEST_F(TuneCommandTest, AProfileThatCannotBeWrittenIsAWarning) {
  profile_ = Model() + "/profile.json";
  const CommandRun tune = Tune({});
  EXPECT_EQ(tune.exit_code, 0) << tune.error;
  EXPECT_THAT(tune.out, HasSubstr("Not written"));
  EXPECT_THAT(tune.error, HasSubstr("warning"));
}

TEST_F(TuneCommandTest, WrongFlagsAreUsageErrors) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--passes", "0"},
                                             {"--seconds", "0"},
                                             {"--prefetch-depth", "0"},
                                             {"--trace", "x"},
                                             {"--io-chunk", "3"}}) {
    const CommandRun tune = Command("tune", flags);
    EXPECT_EQ(tune.exit_code, 2) << flags[0];
    EXPECT_THAT(tune.out, IsEmpty());
  }
}

TEST_F(TuneCommandTest, TooLittleMemoryIsExit1WithTheLeastThatWorks) {
  const CommandRun tune = Command("tune", {"--ram", "4M"});
  EXPECT_EQ(tune.exit_code, 1);
  EXPECT_THAT(tune.error, HasSubstr("error"));
}

}  // namespace
}  // namespace coldstream
