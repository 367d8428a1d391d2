// coldstream plan, as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"
#include "tests/tools/command_model_test.h"
#include "tests/tools/command_run.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PlanCommandTest : public CommandModelTest {
 protected:
  static CommandRun Plan(std::vector<std::string> more) {
    more.insert(more.begin(), "plan");
    return RunColdstream(more);
  }
  static nlohmann::json Json(std::vector<std::string> more) {
    more.push_back("--json");
    const CommandRun run = Plan(more);
    EXPECT_EQ(run.exit_code, 0) << run.error;
    return nlohmann::json::parse(run.out);
  }
};

TEST_F(PlanCommandTest, EachBudgetIsAColumnThatKeepsItsCap) {
  const auto json = Json({"-m", Model(), "--ram", "36M,44M,1G", "-b", "16",
                          "--disk-rate", "1", "-c", "64"});
  ASSERT_EQ(json["budgets"].size(), 3u);
  uint64_t last = ~uint64_t{0};
  for (const auto& budget : json["budgets"]) {
    EXPECT_LE(budget["planned_bytes"], budget["ram_bytes"]);
    const uint64_t disk = budget["disk_bytes_per_pass"];
    EXPECT_LE(disk, last);
    last = disk;
    // The homes account for every weight a pass touches.
    uint64_t resident = 0, all = 0;
    for (const auto& unit : budget["units"]) {
      all += unit["bytes"].get<uint64_t>();
      if (unit["home"] == "ram") resident += unit["bytes"].get<uint64_t>();
    }
    EXPECT_EQ(all, json["weights_bytes"]);
    EXPECT_EQ(resident, budget["ram_bytes_per_pass"]);
    const double disk_seconds = budget["decode"]["disk_seconds"];
    EXPECT_NEAR(disk_seconds, static_cast<double>(disk) / 1e9, 1e-9);
    EXPECT_GE(budget["decode"]["seconds"], budget["decode"]["bound_seconds"]);
  }
  EXPECT_EQ(json["budgets"][2]["disk_bytes_per_pass"], 0);
  EXPECT_EQ(json["budgets"][2]["decode"]["binding"], "compute");
  EXPECT_THAT(json["budgets"][0]["next"].get<std::string>(),
              HasSubstr("of RAM"));
}

// What plan says is what run then does.
TEST_F(PlanCommandTest, ThePlanIsTheOneARunCarriesOut) {
  const auto plan = Json({"-m", Model(), "--ram", "34M", "-c", "16", "-b", "5",
                          "--disk-rate", "1"});
  const CommandRun run =
      RunColdstream({"run", "-m", Model(), "--ram", "34M", "-p", "Hello", "-n",
                     "11", "-c", "16", "-b", "5", "--temp", "0", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto report = nlohmann::json::parse(run.out);
  const auto& budget = plan["budgets"][0];
  EXPECT_EQ(budget["planned_bytes"], report["planned_bytes"]);
  EXPECT_EQ(budget["disk_bytes_per_pass"], report["pass_read_bytes"]);
  EXPECT_EQ(budget["kv_bytes"], report["kv_bytes"]);
  EXPECT_GT(report["pass_read_bytes"], 0);
}

TEST_F(PlanCommandTest, APresetHasARowForEachType) {
  const CommandRun run =
      Plan({"--preset", "tinyllama-1.1b", "--type", "q2_k,q4_k_m,q8_0", "--ram",
            "600M", "--disk-rate", "2", "-c", "512"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("q2_k"), HasSubstr("q4_k_m"), HasSubstr("q8_0"),
                    HasSubstr("gen. tok/s"), HasSubstr("100.0%")));
}

// No file, no rate: no figure is made up, and what is known is printed.
TEST_F(PlanCommandTest, WithoutADiskRateTimesOfStreamingAreUnknown) {
  const auto json = Json({"--preset", "tinyllama-1.1b", "--type", "q8_0",
                          "--ram", "500M,8G", "-c", "512"});
  EXPECT_TRUE(json["budgets"][0]["decode"]["seconds"].is_null());
  EXPECT_GT(json["budgets"][0]["disk_bytes_per_pass"], 0);
  EXPECT_GT(json["budgets"][1]["decode"]["tokens_per_second"], 0);
}

TEST_F(PlanCommandTest,
       ABudgetThatIsTooSmallIsADashAmongOthersAndAnErrorAlone) {
  const std::vector<std::string> some = {
      "-m", Model(), "-b", "16", "-c", "64", "--disk-rate", "1", "--ram"};
  auto both = some, alone = some;
  both.push_back("16M,64M");
  alone.push_back("16M");
  const CommandRun mixed = Plan(both);
  EXPECT_EQ(mixed.exit_code, 0) << mixed.error;
  EXPECT_THAT(mixed.out, HasSubstr("the least that works is --ram"));
  const CommandRun refused = Plan(alone);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, HasSubstr("the least that works is --ram"));
  EXPECT_EQ(refused.out, "");
}

TEST_F(PlanCommandTest, WrongFlagsGetOneLineAndExitTwo) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{
           {},
           {"-m", Model(), "--preset", "llama3-8b"},
           {"-m", Model(), "--type", "q4_k_m"},
           {"--preset", "tinyllama-1.1b", "--type", "q9"},
           {"-m", Model(), "--ram", "4G,x"},
           {"-m", Model(), "--disk-rate", "-1"},
           {"-m", Model(), "--cache-type-k", "q8_0"},
           {"-m", Model(), "--prefetch-depth", "0"}}) {
    const CommandRun run = Plan(wrong);
    EXPECT_EQ(run.exit_code, 2) << ::testing::PrintToString(wrong);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.error, Not(HasSubstr("terminate")));
  }
  EXPECT_EQ(Plan({"--preset", "no-such-model"}).exit_code, 1);
}

TEST_F(PlanCommandTest, TheDiskIsMeasuredOnTheModelsFile) {
  const CommandRun run =
      Plan({"-m", Model(), "--ram", "40M", "-c", "64", "-b", "16", "--units"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, AllOf(HasSubstr("measured now"), HasSubstr("GB/s"),
                             HasSubstr("blk.3.ffn")));
}

}  // namespace
}  // namespace coldstream
