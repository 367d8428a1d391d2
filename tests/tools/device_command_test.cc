// The commands on a device with memory of its own, as a user runs them: the
// program's CUDA device is one of the tests (deferred_cuda.cc).
#include "tests/tools/device_command_test.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/command_run.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST_F(DeviceCommandTest, WeightsThatAreUploadedGiveTheCpusText) {
  const auto cpu = Json(RunFlags(), {"--device", "cpu", "--ram", "1G"});
  const auto cuda = Json(RunFlags(), {"--device", "cuda", "--vram", kVram,
                                      "--ram", kRam, "--staging", "2M"});
  EXPECT_EQ(cpu["device"], "cpu");
  EXPECT_EQ(cpu["vram"], nullptr);
  EXPECT_EQ(cuda["device"], "deferred");
  EXPECT_EQ(cuda["text"], cpu["text"]);
  const auto& vram = cuda["vram"];
  EXPECT_EQ(vram["budget_bytes"], 18u << 20);
  EXPECT_LE(vram["planned_bytes"], vram["budget_bytes"]);
  // A pass uploads what is not resident, from wherever it is.
  const auto later_passes = cuda["passes"].get<double>() - 1;
  constexpr double kPadding = 17 * 4096.0;  // of the units' buffers
  EXPECT_NEAR(vram["bytes_uploaded"].get<double>(),
              vram["upload_bytes_per_pass"].get<double>() * later_passes +
                  cuda["first_pass_read_bytes"].get<double>(),
              kPadding);
  EXPECT_GT(cuda["pass_read_bytes"], 0);
  EXPECT_LT(cuda["pass_read_bytes"], vram["upload_bytes_per_pass"]);
}

TEST_F(DeviceCommandTest, AutoTakesTheDeviceAndAllOfItsMemoryThatIsFree) {
  const auto json = Json(RunFlags(), {"--device", "auto", "--ram", "1G"});
  EXPECT_EQ(json["device"], "deferred");
  EXPECT_EQ(json["device_fallback"], nullptr);
  EXPECT_EQ(json["vram"]["upload_bytes_per_pass"], 0);
  // A GiB less head room.
  EXPECT_EQ(json["vram"]["budget_bytes"], (1024u - 256u) << 20);
}

TEST_F(DeviceCommandTest, TheReportForPeopleTellsOfBothMemories) {
  const CommandRun run = Run(RunFlags(), {"--device", "cuda", "--vram", kVram,
                                          "--ram", "1G", "--staging", "2M"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.error,
              AllOf(HasSubstr("staging 2.79 MiB"), HasSubstr("GB/s while"),
                    HasSubstr("of --vram 18.00 MiB: resident weights"),
                    HasSubstr("upload"), HasSubstr("deferred")));
}

TEST_F(DeviceCommandTest, ThePlanIsTheOneARunCarriesOut) {
  // The split is not left to rates: only the plan is told one of the disk.
  const std::vector<std::string> memory = {
      "--device", "cuda",      "--vram", kVram,       "--ram",
      kRam,       "--staging", "2M",     "--cpu-ffn", "0"};
  const auto plan =
      Json({"plan", "-c", "32", "-b", "5", "--disk-rate", "1"}, memory);
  const auto run = Json(
      {"run", "-p", "Hello", "-n", "6", "--temp", "0", "-c", "32", "-b", "5"},
      memory);
  const auto& budget = plan["budgets"][0];
  EXPECT_EQ(budget["planned_bytes"], run["planned_bytes"]);
  EXPECT_EQ(budget["disk_bytes_per_pass"], run["pass_read_bytes"]);
  EXPECT_EQ(budget["vram"]["planned_bytes"], run["vram"]["planned_bytes"]);
  EXPECT_EQ(budget["vram"]["upload_bytes_per_pass"],
            run["vram"]["upload_bytes_per_pass"]);
  EXPECT_GT(budget["decode"]["upload_seconds"], 0);
  EXPECT_GT(budget["decode"]["compute_seconds"], 0);
  EXPECT_GT(budget["prefill"]["seconds"], 0);
}

TEST_F(DeviceCommandTest, ADeviceThatIsNotHereIsPlannedForByItsRates) {
  const CommandRun run = RunColdstream(
      {"plan",   "-m",          Model(), "--device",   "auto", "--vram",
       "20M,1G", "--ram",       "1G",    "-c",         "32",   "-b",
       "5",      "--disk-rate", "1",     "--h2d-rate", "10",   "--vram-rate",
       "100",    "--cpu-ffn",   "0",     "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json["budgets"].size(), 2u);
  const auto& small = json["budgets"][0];
  EXPECT_EQ(small["vram_bytes"], 20u << 20);
  uint64_t vram = 0, ram = 0;
  for (const auto& unit : small["units"])
    (unit["home"] == "vram" ? vram : ram) += unit["bytes"].get<uint64_t>();
  EXPECT_EQ(vram, small["vram"]["bytes_per_pass"]);
  EXPECT_EQ(ram, small["ram_bytes_per_pass"]);
  EXPECT_GT(vram, 0u);
  EXPECT_NEAR(small["decode"]["upload_seconds"].get<double>(),
              small["vram"]["upload_bytes_per_pass"].get<double>() / 10e9,
              1e-12);
  EXPECT_NEAR(small["decode"]["compute_seconds"].get<double>(),
              json["weights_bytes"].get<double>() / 100e9, 1e-9);
  EXPECT_EQ(small["decode"]["binding"], "upload");
  EXPECT_EQ(small["prefill"]["seconds"], nullptr);
  EXPECT_THAT(small["next"].get<std::string>(), HasSubstr("of VRAM"));
  EXPECT_EQ(json["budgets"][1]["vram"]["upload_bytes_per_pass"], 0);
}

TEST_F(DeviceCommandTest, BenchHoldsUploadsAgainstACeilingOfTheSameRun) {
  const auto json = Json(
      {"bench", "-p", "5", "-n", "3", "-r", "2", "--probe-seconds", "0.1"},
      {"--device", "cuda", "--vram", kVram, "--ram", "1G", "--staging", "2M"});
  EXPECT_EQ(json["device"], "deferred");
  EXPECT_GT(json["ceilings"]["upload_GBps"], 0);
  EXPECT_GT(json["ceilings"]["vram_GBps"], 0);
  const auto& phase = json["generation"];
  // Every pass of every run uploads what is not resident.
  uint64_t uploaded = 0;
  for (const auto& run : phase["runs"])
    uploaded += run["bytes_uploaded"].get<uint64_t>();
  EXPECT_EQ(uploaded,
            phase["passes"].get<uint64_t>() *
                json["vram"]["upload_bytes_per_pass"].get<uint64_t>());
  EXPECT_GT(phase["upload_GBps"], 0);
  EXPECT_GT(phase["upload_percent_of_ceiling"], 0);
  EXPECT_EQ(phase["disk_GBps"], nullptr);
}

TEST_F(DeviceCommandTest, BenchHasARowForUploadsAndAColumnInCsv) {
  const std::vector<std::string> memory = {
      "--device", "cuda", "--vram", kVram, "--ram", "1G", "--staging", "2M"};
  const std::vector<std::string> bench = {
      "bench", "-p", "0", "-n", "2", "-r", "1", "--probe-seconds", "0.1"};
  const CommandRun table = Run(bench, memory);
  ASSERT_EQ(table.exit_code, 0) << table.error;
  EXPECT_THAT(table.out,
              AllOf(HasSubstr("upload GB/s, while copying"),
                    HasSubstr("VRAM GB/s"), HasSubstr("of --vram 18.00 MiB"),
                    HasSubstr("no weights come from disk")));
  std::vector<std::string> csv = memory;
  csv.insert(csv.end(), {"-o", "csv"});
  EXPECT_THAT(Run(bench, csv).out, HasSubstr("generation_bytes_uploaded"));
}

// Nothing is read: there are only the slots to choose.
TEST_F(DeviceCommandTest, TuneChoosesTheSlotsAndALaterRunTakesThem) {
  const TempDir dir;
  RunLimits limits;
  limits.profile = dir.Path("profile.json");
  const std::vector<std::string> memory = {
      "--device", "cuda", "--vram", "24M", "--ram", "1G", "--staging", "2M"};
  const auto tune =
      Json({"tune", "--seconds", "10", "-c", "32"}, memory, limits);
  ASSERT_TRUE(tune["chosen"].is_object()) << tune;
  EXPECT_EQ(tune["device"], "deferred");
  EXPECT_GT(tune["pass_upload_bytes"], 0);
  EXPECT_EQ(tune["written"], true);
  std::set<int> depths;
  for (const auto& row : tune["curve"])
    depths.insert(row["prefetch_depth"].get<int>());
  EXPECT_GT(depths.size(), 2u);
  const auto run = Json(RunFlags(), memory, limits);
  EXPECT_EQ(run["settings"], "tuned");
  EXPECT_EQ(run["prefetch_depth"], tune["chosen"]["prefetch_depth"]);
}

TEST_F(DeviceCommandTest, ATraceHasALaneOfUploads) {
  const TempDir dir;
  const std::string trace = dir.Path("trace.json");
  const CommandRun run =
      Run(RunFlags(), {"--device", "cuda", "--vram", kVram, "--ram", "1G",
                       "--staging", "2M", "--trace", trace});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const CommandRun page = RunColdstream({"trace", trace, "-o", "-"});
  EXPECT_EQ(page.exit_code, 0) << page.error;
  EXPECT_THAT(page.out, HasSubstr("\"upload\""));
}

TEST_F(DeviceCommandTest, MoreMemoryThanTheDeviceHasFreeIsOneLine) {
  setenv("COLDSTREAM_TEST_VRAM", "16777216", 1);
  const CommandRun run =
      Run(RunFlags(), {"--device", "cuda", "--vram", "1G", "--ram", "1G"});
  unsetenv("COLDSTREAM_TEST_VRAM");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error,
              AllOf(HasSubstr("--vram 1024M"), HasSubstr("16 of 16 MiB")));
  EXPECT_THAT(run.out, IsEmpty());
}

TEST_F(DeviceCommandTest, TooLittleDeviceMemoryNamesTheLeastThatWorks) {
  const CommandRun run =
      Run(RunFlags(), {"--device", "cuda", "--vram", "1M", "--ram", "1G"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("--vram"));
}

// Where CUDA cannot start, nothing is computed elsewhere in silence.
TEST_F(DeviceCommandTest, CudaThatCannotStartIsAnErrorWithTheReason) {
  const CommandRun run =
      RunColdstream({"run", "-m", Model(), "-p", "Hello", "-n", "2", "--ram",
                     "1G", "--device", "cuda"});
  if (run.exit_code == 0) GTEST_SKIP() << "CUDA can start here";
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("CUDA"));
  EXPECT_THAT(run.out, IsEmpty());
}

TEST_F(DeviceCommandTest, AutoSaysInTheJsonWhyItIsTheCpu) {
  const CommandRun run =
      RunColdstream({"run", "-m", Model(), "-p", "Hello", "-n", "2", "--ram",
                     "1G", "--device", "auto", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto json = nlohmann::json::parse(run.out);
  if (json["device"] != "cpu") GTEST_SKIP() << "CUDA can start here";
  EXPECT_THAT(json["device_fallback"].get<std::string>(),
              AllOf(HasSubstr("computing on the CPU"), HasSubstr("CUDA")));
}

TEST_F(DeviceCommandTest, DeviceMemoryWithoutADeviceIsAnError) {
  const std::vector<std::string> run = {"run", "-m",    Model(), "-p",
                                        "x",   "-n",    "1",     "--vram",
                                        "1G",  "--ram", "1G"};
  std::vector<std::string> cpu = run, automatic = run;
  cpu.insert(cpu.end(), {"--device", "cpu"});
  automatic.insert(automatic.end(), {"--device", "auto"});
  const CommandRun usage = RunColdstream(cpu);
  EXPECT_EQ(usage.exit_code, 2);
  EXPECT_THAT(usage.error, HasSubstr("--device cpu has none"));
  const CommandRun fallback = RunColdstream(automatic);
  if (fallback.exit_code == 0) GTEST_SKIP() << "CUDA can start here";
  EXPECT_EQ(fallback.exit_code, 1);
  EXPECT_THAT(fallback.error,
              HasSubstr("--vram was given but there is no device"));
}

}  // namespace
}  // namespace coldstream
