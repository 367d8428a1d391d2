// The commands where the CPU computes some layers beside a device, as a user
// runs them.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/device_command_test.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SplitCommandTest : public DeviceCommandTest {
 protected:
  // Memory that about half of the weights do not fit in, and what is asked of
  // the split.
  static std::vector<std::string> Memory(std::vector<std::string> split) {
    split.insert(split.begin(), {"--device", "cuda", "--vram", kVram, "--ram",
                                 "1G", "--staging", "2M"});
    return split;
  }

  // Bytes per second.
  static constexpr double kSlowLink = 0.5e9;

  // Makes the device that a profile remembers one of fast memory behind a slow
  // link.
  static void SlowLink(const std::string& profile) {
    std::ifstream in(profile);
    auto json = nlohmann::ordered_json::parse(in);
    auto& rates = json["compute"]["deferred"]["rates"];
    ASSERT_TRUE(rates.contains("upload, a byte"));
    for (auto& [name, seconds] : rates.items()) seconds = 1e-12;
    rates["upload, a byte"] = 1 / kSlowLink;
    std::ofstream(profile) << json.dump(2);
  }
};

TEST_F(SplitCommandTest, EveryForcedSplitGivesTheCpusText) {
  const auto cpu = Json(RunFlags(), {"--device", "cpu", "--ram", "1G"});
  for (const std::vector<std::string>& split :
       std::vector<std::vector<std::string>>{{"-ngl", "99"},
                                             {"-ngl", "6"},
                                             {"-ngl", "1"},
                                             {"-ngl", "0"},
                                             {"--n-gpu-layers", "8"},
                                             {"--cpu-layers", "3"},
                                             {"--cpu-ffn", "5"},
                                             {"-ngl", "6", "--cpu-ffn", "2"}}) {
    const auto json = Json(RunFlags(), Memory(split));
    EXPECT_EQ(json["text"], cpu["text"]) << ::testing::PrintToString(split);
    const bool none = split == std::vector<std::string>{"-ngl", "0"};
    EXPECT_EQ(json["device"], none ? "cpu" : "deferred");
  }
}

TEST_F(SplitCommandTest, EveryCommandThatComputesTakesTheFlags) {
  for (const char* command :
       {"run", "eval", "bench", "plan", "tune", "batch"}) {
    const CommandRun help = RunColdstream({command, "--help"});
    EXPECT_THAT(help.out,
                AllOf(HasSubstr("-ngl N"), HasSubstr("--gpu-layers"),
                      HasSubstr("--cpu-layers"), HasSubstr("--cpu-ffn")))
        << command;
  }
}

TEST_F(SplitCommandTest, WrongCountsAreOneLineAndExitTwo) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"-ngl", "-1"},
                                             {"-ngl", "many"},
                                             {"-ngl", "1.5"},
                                             {"--cpu-layers", "-2"},
                                             {"--cpu-ffn", "-1"}}) {
    const CommandRun run = Run(RunFlags(), Memory(wrong));
    EXPECT_EQ(run.exit_code, 2) << run.error;
    EXPECT_THAT(run.error, AllOf(HasSubstr("expected a whole number from 0"),
                                 HasSubstr("'" + wrong[1] + "'")));
    EXPECT_THAT(run.out, IsEmpty());
  }
}

TEST_F(SplitCommandTest, CountsThatContradictOneAnotherAreOneLine) {
  const CommandRun run =
      Run(RunFlags(), Memory({"-ngl", "3", "--cpu-layers", "1"}));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("3 layers on the GPU leave 6 of 8"));
  EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1);
}

TEST_F(SplitCommandTest, WithoutADeviceTheFlagsAreAnErrorThatSaysWhatToDo) {
  for (const char* flag : {"--gpu-layers", "--cpu-layers", "--cpu-ffn"}) {
    const std::vector<std::string> run = {
        "run", "-m", Model(), "-p", "x", "-n", "1", "--ram", "1G", flag, "2"};
    std::vector<std::string> cpu = run, automatic = run;
    cpu.insert(cpu.end(), {"--device", "cpu"});
    automatic.insert(automatic.end(), {"--device", "auto"});
    const CommandRun usage = RunColdstream(cpu);
    EXPECT_EQ(usage.exit_code, 2);
    EXPECT_THAT(usage.error,
                AllOf(HasSubstr(flag), HasSubstr("leave one of the two out")));
    const CommandRun fallback = RunColdstream(automatic);
    if (fallback.exit_code == 0) GTEST_SKIP() << "CUDA can start here";
    EXPECT_EQ(fallback.exit_code, 1);
    EXPECT_THAT(fallback.error,
                AllOf(HasSubstr(std::string(flag) + " was given but there is"),
                      HasSubstr("leave it out to run on the CPU")));
    EXPECT_THAT(fallback.out, IsEmpty());
  }
}

// Runs with --json and what they say of the split.
TEST_F(SplitCommandTest, RunSaysWhatTheCpuComputed) {
  const auto json =
      Json(RunFlags(), Memory({"--cpu-layers", "2", "--cpu-ffn", "3"}));
  const auto& split = json["split"];
  EXPECT_EQ(split["layers"], 8);
  EXPECT_EQ(split["cpu_layers"], 2);
  EXPECT_EQ(split["source"], "forced");
  EXPECT_EQ(split["decode"]["cpu_ffn"], 3);
  EXPECT_EQ(split["decode"]["source"], "forced");
  // A unit of attention and one of the FFN in each layer.
  EXPECT_EQ(split["decode"]["cpu_units"], 2 * 2 + 3);
  EXPECT_EQ(split["prefill"]["cpu_units"], 2 * 2 + 3);
  EXPECT_EQ(split["rates"], nullptr);
  // The prompt is short: every pass is as in decode.
  EXPECT_EQ(split["cpu_units_computed"], json["passes"].get<int>() * 7);
  EXPECT_GT(split["cpu_seconds"], 0);
  EXPECT_LT(split["cpu_seconds"], json["compute_seconds"]);
  EXPECT_EQ(Json(RunFlags(), Memory({"-ngl", "0"}))["split"], nullptr);
}

TEST_F(SplitCommandTest, TheReportForPeopleSaysSoInFiveLinesInAll) {
  const CommandRun run =
      Run(RunFlags(), Memory({"--cpu-layers", "2", "--cpu-ffn", "3"}));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.error,
              AllOf(HasSubstr("the CPU: 2 of the layers (forced)"),
                    HasSubstr("of the others 3 (forced) in generation"),
                    HasSubstr("3 (forced) in prompts")));
  EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 5);
}

TEST_F(SplitCommandTest, BenchSaysWhatTheCpuComputedInEachPhase) {
  const auto json =
      Json({"bench", "-p", "20", "-n", "3", "-r", "2", "--probe-seconds", "0"},
           Memory({"--cpu-ffn", "4"}));
  const auto& split = json["split"];
  EXPECT_EQ(split["decode"]["cpu_ffn"], 4);
  EXPECT_EQ(split["decode"]["source"], "forced");
  for (const auto& [phase, kind] :
       {std::pair{"prompt", "prefill"}, std::pair{"generation", "decode"}}) {
    for (const auto& run : json[phase]["runs"]) {
      EXPECT_EQ(run["cpu_units"],
                run["passes"].get<int>() * split[kind]["cpu_units"].get<int>());
      EXPECT_EQ(run["bytes_uploaded"],
                run["passes"].get<int>() *
                    split[kind]["upload_bytes_per_pass"].get<int>());
    }
  }
  EXPECT_EQ(split["decode"]["cpu_units"], 4);
}

// A profile by which the link is slow against both sides' memory.
TEST_F(SplitCommandTest, PlanAndRunChooseAlikeByTheRatesOfTheProfile) {
  const TempDir dir;
  RunLimits limits;
  limits.profile = dir.Path("profile.json");
  const std::vector<std::string> plan = {"plan", "-c",          "32", "-b",
                                         "5",    "--disk-rate", "1"};
  const auto measured = Json(plan, Memory({}), limits);
  const auto& split = measured["budgets"][0]["split"];
  EXPECT_GT(split["rates"]["upload_GBps"], 0);
  EXPECT_GT(split["rates"]["cpu_GBps"], 0);
  EXPECT_GT(split["rates"]["device_token_GBps"], 0);
  EXPECT_EQ(split["decode"]["source"], "chosen");
  SlowLink(limits.profile);
  const auto planned = Json(plan, Memory({}), limits)["budgets"][0];
  const auto& chosen = planned["split"];
  EXPECT_GT(chosen["decode"]["cpu_ffn"], 0);
  EXPECT_EQ(chosen["decode"]["source"], "chosen");
  EXPECT_NEAR(chosen["rates"]["upload_GBps"].get<double>(), kSlowLink / 1e9,
              1e-9);
  auto run = Json(
      {"run", "-p", "Hello", "-n", "6", "--temp", "0", "-c", "32", "-b", "5"},
      Memory({}), limits);
  EXPECT_EQ(run["vram"]["slots"], planned["vram"]["slots"]);
  EXPECT_EQ(run["planned_bytes"], planned["planned_bytes"]);
  EXPECT_EQ(run["vram"]["planned_bytes"], planned["vram"]["planned_bytes"]);
  // The rates too, but for the disk's, which plan was given.
  run["split"]["rates"]["disk_GBps"] = 1;
  for (const char* part :
       {"layers", "cpu_layers", "source", "decode", "prefill", "rates"})
    EXPECT_EQ(run["split"][part], chosen[part]) << part;
  EXPECT_EQ(run["text"],
            Json(RunFlags(), {"--device", "cpu", "--ram", "1G"})["text"]);
  const auto bench =
      Json({"bench", "-p", "5", "-n", "27", "-r", "1", "--probe-seconds", "0"},
           Memory({}), limits);
  EXPECT_EQ(bench["split"]["decode"], chosen["decode"]);
  // What is forced stays forced.
  const auto forced = Json(RunFlags(), Memory({"--cpu-ffn", "0"}), limits);
  EXPECT_EQ(forced["split"]["decode"]["cpu_ffn"], 0);
  EXPECT_EQ(forced["split"]["decode"]["source"], "forced");
}

TEST_F(SplitCommandTest, TuneMeasuresEachSettingWithTheSplitARunWillHave) {
  const TempDir dir;
  RunLimits limits;
  limits.profile = dir.Path("profile.json");
  Json({"plan", "-c", "32", "--disk-rate", "1"}, Memory({}), limits);
  SlowLink(limits.profile);
  const auto tune =
      Json({"tune", "--seconds", "10", "-c", "32"}, Memory({}), limits);
  const auto run = Json(RunFlags(), Memory({}), limits);
  EXPECT_EQ(run["settings"], "tuned");
  EXPECT_EQ(run["prefetch_depth"], tune["chosen"]["prefetch_depth"]);
  EXPECT_GT(run["split"]["decode"]["cpu_ffn"], 0);
  EXPECT_EQ(run["split"]["decode"]["source"], "chosen");
}

// By its rates: the weights in RAM are computed there if the link is slow.
TEST_F(SplitCommandTest,
       APlanForACardOneDoesNotHaveComputesInRamIfThatIsFaster) {
  const auto plan = [](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"plan", "-m", Model(), "--device", "auto", "--vram", "20M",
                 "--ram", "1G", "-c", "32", "-b", "16", "--disk-rate", "1",
                 "--vram-rate", "1000", "--json"});
    const CommandRun run = RunColdstream(more);
    EXPECT_EQ(run.exit_code, 0) << run.error;
    return nlohmann::json::parse(run.out, nullptr, false)["budgets"][0];
  };
  const auto slow = plan({"--h2d-rate", "0.5"});
  const auto none = plan({"--h2d-rate", "0.5", "--cpu-ffn", "0"});
  const auto fast = plan({"--h2d-rate", "100000"});
  EXPECT_GT(slow["split"]["decode"]["cpu_ffn"], 0);
  EXPECT_EQ(slow["split"]["rates"]["upload_GBps"], 0.5);
  EXPECT_EQ(slow["split"]["rates"]["device_GBps"], 1000);
  EXPECT_EQ(slow["split"]["rates"]["device_token_GBps"], nullptr);
  EXPECT_LT(slow["decode"]["seconds"], none["decode"]["seconds"]);
  EXPECT_GT(slow["decode"]["cpu_seconds"], 0);
  EXPECT_EQ(fast["split"]["decode"]["cpu_ffn"], 0);
  EXPECT_EQ(fast["split"]["decode"]["source"], "chosen");
  uint64_t cpu = 0, uploaded = 0;
  for (const auto& unit : slow["units"]) {
    const auto bytes = unit["bytes"].get<uint64_t>();
    if (unit["decode"] == "cpu") {
      EXPECT_EQ(unit["home"], "ram");
      cpu += bytes;
    } else if (unit["home"] != "vram") {
      uploaded += bytes;
    }
  }
  EXPECT_EQ(cpu, slow["decode"]["cpu_bytes"]);
  EXPECT_NEAR(slow["decode"]["upload_seconds"].get<double>(),
              static_cast<double>(uploaded) / 0.5e9,
              0.01 * static_cast<double>(uploaded) / 0.5e9);
}

TEST_F(SplitCommandTest, TheTableShowsWhoComputesWhat) {
  const CommandRun run = RunColdstream(
      {"plan", "-m",           Model(), "--device",   "auto", "--vram",
       "20M",  "--ram",        "1G",    "-c",         "32",   "-b",
       "16",   "--disk-rate",  "1",     "--h2d-rate", "1",    "--vram-rate",
       "1000", "--cpu-layers", "1",     "--cpu-ffn",  "2",    "--units"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, AllOf(HasSubstr("computed by the CPU"),
                             HasSubstr("1, forced"), HasSubstr("2, forced"),
                             HasSubstr("\nCPU "), HasSubstr("ram, cpu"),
                             HasSubstr("in RAM and computed by the CPU")));
  // The strip: the first layer's two units are always the CPU's.
  EXPECT_THAT(run.out, HasSubstr("cc"));
}

// As with llama.cpp, where 0 is the CPU's way to say so.
TEST_F(SplitCommandTest, NoLayersOnTheGpuNeedsNoDevice) {
  for (const char* device : {"cpu", "auto"}) {
    const CommandRun run =
        RunColdstream({"run", "-m", Model(), "-p", "Hello", "-n", "2", "--ram",
                       "1G", "-ngl", "0", "--device", device, "--json"});
    EXPECT_EQ(run.exit_code, 0) << run.error;
  }
}

TEST_F(SplitCommandTest, APlanForNoDeviceSaysWhatToGive) {
  const CommandRun none =
      RunColdstream({"plan", "-m", Model(), "--ram", "1G", "--device", "auto",
                     "--disk-rate", "1", "-ngl", "3"});
  if (none.exit_code == 0) GTEST_SKIP() << "CUDA can start here";
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.error,
              AllOf(HasSubstr("--gpu-layers was given but there is no device "
                              "to plan for"),
                    HasSubstr("--vram")));
  const CommandRun nothing =
      RunColdstream({"plan", "-m", Model(), "--ram", "1G", "--device", "auto",
                     "--vram", "1G", "--disk-rate", "1", "-ngl", "0"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.error, HasSubstr("-ngl 0 leaves nothing to a device"));
}

}  // namespace
}  // namespace coldstream
